"""Which packages a chat wants, may have and has settled."""

from septet.domain.packages import Installation, MissingPackages, Provisions, wanted_words

WANTED = MissingPackages(distributions=("numpy", "rich"), unknown=("clocklib",), setup="make env")


def test_what_is_wanted_is_named_with_what_is_not_certain() -> None:
    assert wanted_words(WANTED) == (
        "numpy, rich, clocklib (if the index has one of that name that provides it), what `make env` brings"
    )
    assert wanted_words(MissingPackages(distributions=("numpy",))) == "numpy"
    assert WANTED.names == {"numpy", "rich", "clocklib", "make env"}
    assert WANTED
    assert not MissingPackages()


def test_a_package_is_asked_about_until_it_was_allowed_or_refused_or_failed() -> None:
    asked = Provisions(wanted=MissingPackages(distributions=("numpy", "rich")))
    assert asked.to_ask == asked.wanted
    assert asked.with_decision(("numpy",), allowed=True, always=False).to_ask == asked.wanted
    allowed = asked.with_decision(("numpy", "rich"), allowed=True, always=False)
    assert not allowed.to_ask
    assert allowed.fresh(WANTED) == WANTED, "it is allowed and not yet installed"
    refused = asked.with_decision(("numpy", "rich", "make env"), allowed=False, always=False)
    assert not refused.to_ask
    assert refused.fresh(WANTED) == MissingPackages(unknown=("clocklib",))
    assert not asked.with_decision(("numpy",), allowed=True, always=True).to_ask, "all others are allowed"
    done = allowed.after(Installation(installed=("numpy",), failed=("clocklib",)))
    assert done.wanted == MissingPackages()
    assert done.fresh(WANTED) == MissingPackages(distributions=("rich",), setup="make env")
    always = asked.with_decision((), allowed=True, always=True)
    assert always.with_decision((), allowed=True, always=False).always, "it was said once and for all"
