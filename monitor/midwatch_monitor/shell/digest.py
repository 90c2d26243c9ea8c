"""The digest of a file's content, as the live watch computes it."""

from hashlib import blake2b


def digest(content: str) -> str:
    """Of the content as UTF-8, in hexadecimal."""
    return blake2b(content.encode(errors="replace"), digest_size=16).hexdigest()
