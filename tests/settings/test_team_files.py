"""Teams from files: combined freely, checked strictly."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from septet.domain.plans import CHECK_FORMS, Plan, parse_plan
from septet.domain.teams import ALIASES, ROLES, Allowance, Edge, RoleSpec, TeamSpec
from septet.errors import BadConfig
from septet.settings.team_files import MemberForm, TeamForm, check_team, load_team, unreachable_member
from septet.team.graph import GUARDS
from septet.ways.table import TEAMS, way_names


def write(folder: Path, text: str) -> str:
    path = folder / "team.yaml"
    path.write_text(text)
    return str(path)


def test_built_in_teams_go_by_name() -> None:
    assert load_team("iterate") is TEAMS["iterate"]


def test_a_file_describes_a_team(tmp_path: Path) -> None:
    text = "members:\n- role: planner\n- {role: coder, name: ada, model: 'scripted:x'}\nbudget: {rounds: 2}\n"
    team = load_team(write(tmp_path, text))
    assert team.name == "team"
    assert team.budget.rounds == 2
    assert team.members == (
        RoleSpec(name="planner", role="planner"),
        RoleSpec(name="ada", role="coder", model=("scripted:x",)),
    )


def test_a_member_may_have_a_budget_of_its_own(tmp_path: Path) -> None:
    text = "members:\n- {role: coder, budget: {tokens: 5000, cost: 0.5, seconds: 60}}\n"
    assert load_team(write(tmp_path, text)).members[0].budget == Allowance(tokens=5000, cost=0.5, seconds=60)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("members: [{role: codder}]", "unknown role 'codder': did you mean 'coder'?"),
        ("members: [{role: coder}, {role: coder}]", "two members are called 'coder'"),
        ("members: []", "has no members"),
        ("members: [{role: coder}]\nway: anarchy", "unknown way 'anarchy'"),
        ("members: [{role: coder, model: 'url:http://x#y'}]", "may not choose the address"),
        ("members: [{role: coder, model: 'https://x#y'}]", "may not choose the address"),
        ("members: [{role: coder}]\nbugdet: {}", "team.yaml:2: unknown key 'bugdet': did you mean 'budget'?"),
        ("members: [{role: coder, budget: {tokns: 5}}]", "unknown key 'tokns': did you mean 'tokens'?"),
        ("members: [{role: coder, name: ' '}]", "a member has no name"),
        ("members: [{role: coder}]\npackages: on", "packages cannot be 'on': write off, ask or auto"),
        ("- a", "expected keys with values, got a list"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadConfig) as caught:
        load_team(write(tmp_path, text))
    assert complaint in str(caught.value)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(BadConfig, match="no team 'itarate'"):
        load_team("itarate")


def test_the_example_of_the_page_is_a_team(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "running.md").read_text()
    (tmp_path / "team.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    team = load_team(str(tmp_path / "team.yaml"))
    assert (team.tests, team.network, team.packages) == ("node --test", ("api.example.org",), "ask")
    assert (team.languages, team.warm) == ({".kt": "kotlinc -script"}, ("numpy", "pandas"))


def test_the_group_chat_of_the_page_is_a_team(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "teams.md").read_text()
    team = check_team(load_team(write(tmp_path, page.partition("```yaml\n")[2].partition("```")[0])))
    assert [one.name for one in team.members] == ["Boss", "Ann", "Cody", "runner"]
    assert [guard for guard in GUARDS if f"`{guard}`" not in page] == []
    assert [alias for alias in ALIASES if f"`{alias}`" not in page] == []


def test_the_page_on_teams_knows_every_key_and_every_check() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "teams.md").read_text()
    plan = parse_plan(page.partition("```\n")[2].partition("```")[0])
    assert isinstance(plan, Plan)
    assert all(f"`{kind.split()[0]}" in page for kind in CHECK_FORMS.split(" | "))
    keys = {*TeamForm.__struct_fields__, *MemberForm.__struct_fields__} - {"form", "stepwise"}
    assert [key for key in keys if f"`{key}`" not in page] == []
    assert [one for one in (*way_names(), *ROLES) if f"`{one}`" not in page] == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("off", "off"),
        ("on", "on"),
        ("[]", "off"),
        ("[API.example.org, localhost:80]", ("api.example.org", "localhost:80")),
    ],
)
def test_the_network_is_off_on_or_hosts(tmp_path: Path, written: str, meant: object) -> None:
    (tmp_path / "team.yaml").write_text(f"members: [role: coder]\nnetwork: {written}\npackages: off\n")
    team = load_team(str(tmp_path / "team.yaml"))
    assert (team.network, team.packages) == (meant, "off")


@pytest.mark.parametrize("written", ["[http://x/]", "[a b]", "[x:99999]", "maybe", "[1.2]"])
def test_what_is_no_host_is_refused(tmp_path: Path, written: str) -> None:
    (tmp_path / "team.yaml").write_text(f"members: [role: coder]\nnetwork: {written}\n")
    with pytest.raises(BadConfig):
        load_team(str(tmp_path / "team.yaml"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("members: [{role: coder}]", "has no planner, and the way plan_then_iterate needs one"),
        ("floor: pair\nmembers: [{role: manager}, {role: coder}]", "has no runner"),
        (
            "floor: plan\nmembers: [{role: planner}, {role: planner, name: other}]",
            "the way plan can have only one planner",
        ),
        ("way: round_robin\nmembers: [role: writer]", "the way round_robin gives no turn to a writer"),
    ],
)
def test_a_team_that_cannot_work_is_refused_before_it_begins(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(BadConfig) as caught:
        check_team(load_team(write(tmp_path, text)))
    assert complaint in str(caught.value)


@pytest.mark.parametrize("team", TEAMS.values(), ids=TEAMS)
def test_the_teams_that_come_along_can_work(team: TeamSpec) -> None:
    assert check_team(team) == team


def test_members_of_a_floor_that_goes_by_role_keep_their_names_as_titles(tmp_path: Path) -> None:
    text = "way: plan\nmembers: [{role: planner, name: ada}]"
    assert check_team(load_team(write(tmp_path, text))).members == (
        RoleSpec(name="planner", role="planner", title="ada"),
    )
    talk = "floor: round_robin\nmembers: [{role: coder, name: ada}]"
    assert check_team(load_team(write(tmp_path, talk))).members == (RoleSpec(name="ada", role="coder"),)


@pytest.mark.parametrize("name", ["node", "data", "api"])
def test_the_examples_are_teams(name: str) -> None:
    team = load_team(str(Path(__file__).parent.parent.parent / "examples" / "teams" / f"{name}.yaml"))
    assert team.member("coder")


CLUB = """
floor: group_chat
members:
- {role: writer, name: Ann, next: [Bob, {to: runner, when: unrun}]}
- {role: editor, name: Bob, next: Ann}
- {role: coder}
- {role: runner}
- {role: admin}
- {role: user_proxy}
- {role: examplar, next: {to: coder}}
"""


def test_a_group_chat_may_say_who_follows_whom(tmp_path: Path) -> None:
    ann, bob, *_, exemplar = check_team(load_team(write(tmp_path, CLUB))).members
    assert ann.next == (Edge(to="Bob"), Edge(to="runner", when="unrun"))
    assert (bob.next, exemplar.next) == ((Edge(to="Ann"),), (Edge(to="coder"),))


def test_roles_go_by_the_names_of_other_projects_too(tmp_path: Path) -> None:
    members = load_team(write(tmp_path, CLUB)).members
    assert [(one.name, one.role) for one in members][-3:] == [
        ("admin", "manager"),
        ("user_proxy", "proxy"),
        ("examplar", "exemplar"),
    ]
    pair = "floor: pair\nmembers: [{role: admin}, {role: coder}, {role: runner}, {role: examplar}]"
    boss, *_, exemplar = check_team(load_team(write(tmp_path, pair))).members
    assert (boss.name, boss.title) == ("manager", "admin")
    assert (exemplar.name, exemplar.title) == ("exemplar", "examplar")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[{role: writer, next: Bob}]", "next: unknown member 'Bob'"),
        ("[{role: writer, next: proxy}, {role: proxy}]", "next: unknown member 'proxy'"),
        (
            "[{role: coder, next: {to: runner, when: fialed}}, {role: runner}]",
            "unknown guard 'fialed': did you mean 'failed'?",
        ),
        ("[{role: writer, next: [{to: writer, when: failed}]}]", "'failed' is about code that is run"),
        ("[{role: writer, next: writer}, {role: editor}]", "nobody hands over to 'editor'"),
        ("[{role: writer, next: {too: writer}}]", "too"),
    ],
)
def test_a_graph_that_cannot_be_followed_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadConfig) as caught:
        load_team(write(tmp_path, f"floor: group_chat\nmembers: {text}"))
    assert complaint in str(caught.value)


def test_other_floors_have_an_order_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="next: is for way: group_chat"):
        load_team(write(tmp_path, "floor: plan\nmembers: [{role: planner, next: planner}]"))


@pytest.mark.parametrize(
    ("followers", "unreached"), [(("b",), "boss"), (("b", "c"), ""), (("b", "c", "a"), "")]
)
def test_a_manager_is_reached_where_there_is_a_choice(followers: tuple[str, ...], unreached: str) -> None:
    first = RoleSpec(name="a", role="writer", next=tuple(Edge(to=name) for name in followers))
    others = [
        RoleSpec(name=name, role="writer", next=(Edge(to="a"),)) for name in sorted({*followers} - {"a"})
    ]
    assert unreachable_member([first, *others, RoleSpec(name="boss", role="manager")]) == unreached


def test_only_a_team_with_reviews_can_ask_before_them() -> None:
    assert check_team(replace(TEAMS["iterate"], consult=True)).consult
    with pytest.raises(BadConfig, match="has no reviews to ask you before"):
        check_team(replace(TEAMS["pair"], consult=True))
