"""HTTP requests as kube-apiserver sends them to a webhook."""

from __future__ import annotations


def http_request(path: str, body: bytes, *, server_name: str, timeout_seconds: int) -> bytes:
    """Return the whole HTTP request, with the headers of the API server's client."""
    head = (
        f"POST {path}?timeout={timeout_seconds}s HTTP/1.1\r\n"
        f"Host: {server_name}:9443\r\n"
        "User-Agent: kube-apiserver-admission\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Accept: application/json, */*\r\n"
        "Content-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n"
        "\r\n"
    )
    return head.encode() + body
