"""The wrappers around a model, in the order that makes them right."""

from collections.abc import Sequence

from septet.models.arguments import RepairingArguments
from septet.models.briefer import Briefer
from septet.models.counting import Counted
from septet.models.fallback import Fallback, Tell
from septet.models.in_words import InWords
from septet.models.pricing import Priced
from septet.models.reporting import Reporting
from septet.models.retrying import Patience, Retrying, Timed
from septet.ports import Model


def sturdy(models: Sequence[tuple[str, Model]], patience: Patience, tell: Tell) -> Model:
    """A model that finishes undamaged or stops resumable, whatever its service does.

    Every attempt at a smaller or repaired request is itself retried; only a model that still fails gives
    way to the next one.
    """
    each = [
        (
            name,
            Priced(
                RepairingArguments(Briefer(Retrying(Timed(InWords(Counted(model))), patience, tell))), name
            ),
        )
        for name, model in models
    ]
    first = each[0][1] if len(each) == 1 else Fallback(each, tell)
    return Reporting(first, models[0][0])
