"""What secrets look like that are known by their form: keys and tokens of providers. Data.

In the syntax of RE2, which takes linear time whatever the pattern and the text. The group `secret`
is what is masked; without one, all of it is.
"""

from collections.abc import Mapping
from types import MappingProxyType

_BODY = (
    r"(?:[^A-Za-z+/=-]{0,20}(?:[A-Za-z-]{4,12}: [^\n]{1,80}\s+){0,3}"
    r"[A-Za-z0-9+/=]{16}[^-]*(?:-----END[^-\n]*-----)?"
    r"|(?:\r?\n[^\n]{0,120}[A-Za-z0-9+/]{40}[^\n]{0,60})+"
    r"(?:\r?\n[^\n]{0,160}(?:\r?\n[^\n]{0,120})?-----END[^-\n]*-----)?)?"
)
"""The lines of a key block: as they stand, numbered or quoted, with or without headers.

Last, what stands behind the name of a file or a time in each line, as `grep` and logs write it.
"""

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "private key": rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY[A-Z ]{{0,6}}-----{_BODY}",
        "private key id": r"private_key_id[\"'\\]*\s*[:=]\s*[\"'\\]*(?P<secret>[0-9a-f]{40})\b",
        "age key": r"\bAGE-SECRET-KEY-[0-9A-Za-z-]{20,}",
        "anthropic key": r"\bsk-ant-[A-Za-z0-9_-]{20,}",
        "openrouter key": r"\bsk-or-[A-Za-z0-9_-]{20,}",
        "openai key": r"\bsk-[A-Za-z0-9_-]{20,}",
        "google key": r"\bAIza[0-9A-Za-z_-]{35}",
        "google token": r"\b(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,}",
        "aws key": r"\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b",
        "bedrock key": r"\bABSK[A-Za-z0-9+/]{40,}={0,2}",
        "azure key": r"\b(?:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})",
        "groq key": r"\bgsk_[A-Za-z0-9]{20,}",
        "xai key": r"\bxai-[A-Za-z0-9]{20,}",
        "hugging face token": r"\bhf_[A-Za-z0-9]{30,}",
        "digitalocean token": r"\bdo[opr]_v1_[0-9a-f]{40,}",
        "sendgrid key": r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
        "telegram token": r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}",
        "slack token": r"\b(?:xox[abeoprs]|xapp)[.-][A-Za-z0-9.-]{10,}",
        "web hook": r"hooks\.slack\.com/services/(?P<secret>T\w+/B\w+/\w{16,})",
        "github token": r"\b(?:gh[opusr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
        "gitlab token": r"\bgl(?:pat|rt|dt|ptt|ft|soat)-[A-Za-z0-9_.-]{20,}",
        "npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
        "pypi token": r"\bpypi-[A-Za-z0-9_-]{50,}",
        "stripe key": r"\b(?:[rs]k_(?:live|test)_|whsec_)[A-Za-z0-9]{16,}",
        "json web token": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        "perplexity key": r"\bpplx-[A-Za-z0-9]{32,}",
        "nvidia key": r"\bnvapi-[A-Za-z0-9_-]{40,}",
        "cerebras key": r"\bcsk-[A-Za-z0-9]{32,}",
        "replicate token": r"\br8_[A-Za-z0-9]{37}\b",
        "tavily key": r"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{24,}",
        "vault token": r"\bhv[sb]\.[A-Za-z0-9_-]{24,}",
        "docker token": r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
        "databricks token": r"\bdapi[0-9a-f]{32}\b",
        "shopify token": r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
        "atlassian token": r"\bATATT3[A-Za-z0-9_=-]{40,}",
        "grafana token": r"\bglsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}\b",
        "url password": r"://[^\s/:@\"'<>]*:(?P<secret>[^\s/\"'<>]{3,200})@",
        "url token": r"://(?P<secret>[A-Za-z0-9_]{32,200})@",
        "authorization": r"(?i)authorization[\"'\\]*\s*[:=]\s*[\"'\\]*"
        r"(?:bearer|basic|token|digest|apikey)\s+(?P<secret>[\w.~+/=:-]{8,})",
    }
)
"""The patterns that are known without a configuration, by the kind that a mark names."""
