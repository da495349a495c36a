"""What can go wrong with a model's service: a small closed set that the wrappers here choose by.

Fault                 never leaves this package: `reporting` turns what is left into ModelFailed
├── Passing           asking again may help
│   ├── Limited       429, 503 or 529: wait, `after` seconds if the server said so
│   ├── Broken        a 5xx answer
│   ├── Unreachable   no name, no connection, or it was lost
│   ├── Stalled       connected, but silent for too long
│   ├── Garbled       an answer that is none: cut off, malformed, empty, HTML, no UTF-8, without a finish reason
│   └── Oversized     an answer that is larger than any may be
├── TooLong           the request does not fit the model's context: ask with less
├── Filtered          the provider's filter swallowed the answer: another model may not mind
├── Lacking           the server has no tools, no schemas or no eyes: say it in text
├── Refused           a request that this server will never take
└── Denied            a missing, wrong or exhausted key: only a person can help
"""

from typing import Literal

import msgspec

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises for JSON that is none: malformed, not in UTF-8, or nested beyond all measure."""

Feature = Literal["tools", "schema", "images"]


class Fault(Exception):
    """`remedy` is what a person can do about it."""

    remedy = "resume the chat later"

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class Passing(Fault):
    pass


class Limited(Passing):
    def __init__(self, cause: str, after: float | None = None) -> None:
        super().__init__(cause)
        self.after = after


class Broken(Passing):
    pass


class Unreachable(Passing):
    remedy = "check the address and the network, then resume the chat"


class Stalled(Passing):
    pass


class Garbled(Passing):
    pass


class Oversized(Passing):
    remedy = "resume the chat, or let answers be larger (SEPTET_LONGEST_ANSWER, in MiB)"


class TooLong(Fault):
    remedy = "resume the chat with a model that has a larger context"


class Filtered(Fault):
    remedy = "say it differently or resume the chat with another model"


class Lacking(Fault):
    remedy = "resume the chat with another model"

    def __init__(self, feature: Feature, cause: str) -> None:
        super().__init__(cause)
        self.feature: Feature = feature


class Refused(Fault):
    remedy = "check the model's name and address"


class Denied(Fault):
    remedy = "set a valid key (`septet keys set`)"
