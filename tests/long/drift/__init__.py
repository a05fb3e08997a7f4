"""Evidence made anew from real Kafka, to see whether what the project learnt from it still holds."""
