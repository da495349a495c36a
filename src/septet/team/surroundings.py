"""What a member is told of the place where programs run, as far as it offers more than the usual. Pure."""

from septet.domain.state import State

INSTALLED = {
    "ask": "Packages of the public index may be imported: what is missing is installed if the person agrees.",
    "auto": "Packages of the public index may be imported: what is missing is installed before the run.",
}
BY_PROXY = "by the proxy in the environment, which urllib, requests, curl and the like use by themselves"


def surroundings(state: State) -> list[str]:
    """A section, or nothing where there is neither network nor a way to install packages."""
    lines = [*network_lines(state), *package_lines(state)]
    return ["\n".join(["# Where programs run, beyond what is said above", *lines])] if lines else []


def network_lines(state: State) -> list[str]:
    network = state.team.network
    if network == "off":
        return []
    where = "every public host" if isinstance(network, str) else f"only {', '.join(network)}"
    return [f"They can reach {where} over HTTP and HTTPS, {BY_PROXY}."]


def package_lines(state: State) -> list[str]:
    """An assistant's code cannot wait for the person in the middle of a call: there, asking is no use."""
    policy = "off" if state.team.floor == "direct" and state.team.packages == "ask" else state.team.packages
    return [INSTALLED[policy]] if policy in INSTALLED else []
