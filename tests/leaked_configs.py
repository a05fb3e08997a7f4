"""Names of plugins' configs that hold secrets, which no list of words would find."""

LEAKED = (
    "basic.auth.user.info",
    "db.pwd",
    "pass",
    "my.connection.string",
    "auth.header",
    "authorization",
    "bearer",
    "cookie",
    "private",
    "secret.ssl.keystore.type",
)
