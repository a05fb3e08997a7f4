"""tools/install.py: what pip is told, uv is told, or pip installs."""

from __future__ import annotations

from tools.install import uv_settings


def test_uv_is_given_the_settings_of_pip() -> None:
    listed = """\
:env:.disable-pip-version-check='1'
:env:.find-links='/wheels /more'
global.cert='/etc/ssl/own.crt'
global.extra-index-url='\\nhttps://a/simple\\nhttps://b/simple'
global.index-url='https://user:word@mirror/simple'
install.timeout='60'
"""
    assert uv_settings(listed) == {
        "SSL_CERT_FILE": "/etc/ssl/own.crt",
        "UV_DEFAULT_INDEX": "https://user:word@mirror/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_HTTP_TIMEOUT": "60",
        "UV_INDEX": "https://a/simple https://b/simple",
    }


def test_pip_installs_where_it_has_settings_that_uv_cannot_be_given() -> None:
    assert uv_settings("global.index-url='https://a/simple'\nglobal.client-cert='/own.pem'\n") is None
