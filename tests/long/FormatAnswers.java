import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Set;
import kafka.tools.StorageTool;

/**
 * Runs kafka-storage with the arguments of each line, separated by tabs, as its main method does.
 * Answers: exit code, class of what was thrown or -, and in base64 its message and what was printed.
 */
public class FormatAnswers {
    // What the tool's main method catches.
    private static final Set<String> CAUGHT = Set.of("FormatterException", "TerseFailure");

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(new PrintStream(new ByteArrayOutputStream()));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            int code = 1;
            String thrown = "-";
            String message = "";
            try {
                code = StorageTool.execute(line.split("\t", -1), new PrintStream(printed));
            } catch (Throwable error) {
                thrown = CAUGHT.contains(error.getClass().getSimpleName()) ? "-" : error.getClass().getName();
                message = String.valueOf(error.getMessage());
            }
            answers.println(String.join(" ", "answer", Integer.toString(code), thrown, encoded(message.getBytes(StandardCharsets.UTF_8)),
                encoded(printed.toByteArray())));
        }
        answers.flush();
    }

    private static String encoded(byte[] content) {
        return Base64.getEncoder().encodeToString(content) + ".";
    }
}
