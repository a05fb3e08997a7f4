from tests.long.s3proxy import s3, s3_server, s3proxy_jar

__all__ = ["s3", "s3_server", "s3proxy_jar"]
