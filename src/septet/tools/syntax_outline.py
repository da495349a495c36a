"""Definitions of files in other languages than Python, by tree-sitter where the extra `outline` is installed."""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from septet.common.values import Value

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

DEEPEST = 6
LARGEST = 1 << 20
"""Characters of a file that is parsed."""


class Grammar(Value):
    """Where a language's grammar is, and which of its nodes are definitions."""

    module: str
    function: str
    definitions: frozenset[str]


SCRIPT = frozenset(
    """function_declaration generator_function_declaration class_declaration abstract_class_declaration
    method_definition method_signature abstract_method_signature interface_declaration type_alias_declaration
    enum_declaration internal_module function_signature variable_declarator""".split()
)
C = frozenset("function_definition struct_specifier union_specifier enum_specifier type_definition".split())
RUST = (
    "function_item struct_item enum_item union_item trait_item impl_item mod_item type_item macro_definition"
)
JAVA = """class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration
    method_declaration constructor_declaration"""
JAVASCRIPT = Grammar(module="tree_sitter_javascript", function="language", definitions=SCRIPT)
CPP = Grammar(
    module="tree_sitter_cpp",
    function="language",
    definitions=C | {"class_specifier", "namespace_definition", "concept_definition"},
)
GRAMMARS = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), JAVASCRIPT),
    **dict.fromkeys(
        (".ts", ".mts", ".cts"),
        Grammar(module="tree_sitter_typescript", function="language_typescript", definitions=SCRIPT),
    ),
    ".tsx": Grammar(module="tree_sitter_typescript", function="language_tsx", definitions=SCRIPT),
    ".go": Grammar(
        module="tree_sitter_go",
        function="language",
        definitions=frozenset({"function_declaration", "method_declaration", "type_spec"}),
    ),
    ".rs": Grammar(module="tree_sitter_rust", function="language", definitions=frozenset(RUST.split())),
    ".java": Grammar(module="tree_sitter_java", function="language", definitions=frozenset(JAVA.split())),
    ".c": Grammar(module="tree_sitter_c", function="language", definitions=C),
    **dict.fromkeys((".h", ".hh", ".hpp", ".cc", ".cpp", ".cxx"), CPP),
}
VALUES = ("arrow_function", "function_expression", "function", "class")
"""What makes a variable of a script a definition."""


def syntax_definitions(path: str, text: str, *, nested: bool) -> list[str] | None:
    """Line and head of each definition; None if the language is unknown or its grammar is not installed."""
    grammar = GRAMMARS.get(f".{path.rpartition('.')[2]}")
    parser = parser_of(grammar) if grammar and len(text) <= LARGEST else None
    if grammar is None or parser is None:
        return None
    source = text.encode()
    tree = parser.parse(source)
    return list(lines_of(tree.root_node, source, grammar, 0, DEEPEST if nested else 1))


@cache
def parser_of(grammar: Grammar) -> "Parser | None":
    try:
        from tree_sitter import Language, Parser

        load: Callable[[], object] = getattr(import_module(grammar.module), grammar.function)
        return Parser(Language(load()))
    except (
        ImportError,
        AttributeError,
        ValueError,
    ):  # the last: a grammar for another version of tree-sitter
        return None


def lines_of(node: "Node", source: bytes, grammar: Grammar, depth: int, deepest: int) -> Iterator[str]:
    for child in node.named_children:
        inner = depth
        if is_definition(child, grammar):
            yield f"{child.start_point.row + 1} {'  ' * depth}{head_of(child, source)}"
            inner = depth + 1
        if inner <= deepest:
            yield from lines_of(child, source, grammar, inner, deepest)


def is_definition(node: "Node", grammar: Grammar) -> bool:
    """Whether the node defines something; a mention of a struct, or a variable with a plain value, does not."""
    if node.type not in grammar.definitions:
        return False
    if node.type.endswith("_specifier"):
        return all(node.child_by_field_name(part) is not None for part in ("name", "body"))
    if node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        return value is not None and value.type in VALUES
    return True


def head_of(node: "Node", source: bytes) -> str:
    """The definition without its body, on one line."""
    value = node.child_by_field_name("value") or node
    body = value.child_by_field_name("body") or node.child_by_field_name("body")
    end = body.start_byte if body is not None else node.end_byte
    head = " ".join(source[node.start_byte : end].decode(errors="replace").split())
    return (head.partition("{")[0] if body is None else head.removesuffix("=>")).rstrip(" {:")
