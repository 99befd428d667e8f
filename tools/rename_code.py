"""Names of modules and classes in Python, by the syntax tree."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import GlobalScope, ImportAssignment, MetadataWrapper, ScopeProvider

from tools.rename_text import Words, replace_ticked, replace_words

Names = Mapping[tuple[str, str], str]
"""(module, name) -> new name."""


@dataclass
class Outcome:
    """The new text of a file, and what was done otherwise than wanted."""

    text: str
    notes: list[str] = field(default_factory=list)


def imports_of(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Yield (module, name, name here) of every `from ... import` of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.module, alias.name, alias.asname or alias.name


def with_reexports(names: Names, trees: Mapping[str, ast.Module]) -> dict[tuple[str, str], str]:
    """Add the modules that pass a renamed name on under the same name."""
    found = dict(names)
    imported = [(m, *row) for m, tree in trees.items() for row in imports_of(tree)]
    while True:
        more = {
            (here, name): found[module, name]
            for here, module, name, known in imported
            if (module, name) in found and known == name and (here, name) not in found
        }
        if not more:
            return found
        found.update(more)


def rename_modules(text: str, words: Words, folder: str) -> Outcome:
    """Write a file's imports, and the modules its strings and comments name, anew."""
    if not words.named_in(text):
        return Outcome(text)
    code = _Modules(text, words).run()
    if words.replace(code.text, folder) == code.text:
        return code
    tree = cst.parse_module(code.text).visit(_Strings(lambda t: words.replace(t, folder)))
    return Outcome(tree.code, code.notes)


def rename_names(
    text: str, module: str, words: Words, attributes: Mapping[str, str], names: Names
) -> Outcome:
    """Write a file's classes, functions and constants anew, wherever they came from."""
    own = {name: new for (where, name), new in names.items() if where == module}
    tree = ast.parse(text)
    taken = _defined(tree)
    mine = {old: new for old, new in own.items() if old in taken or _passed_on(tree, old)}
    notes = [
        f"{old} becomes {new}, which is there already" for old, new in mine.items() if new in taken
    ]
    known = known_words(tree, module, names)
    fields = [name for name in attributes if name in text]
    if not known and not fields and not _by_module(tree, names) and words.replace(text) == text:
        return Outcome(text, notes)
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    visitor = _Names(wrapper, mine, names, attributes)
    made = wrapper.module.visit(visitor)
    made = made.visit(_Strings(lambda t: replace_ticked(words.replace(t), known)))
    made = made.visit(_Annotations(known))
    return Outcome(made.code, notes)


def _defined(tree: ast.Module) -> set[str]:
    """Names that a module binds at its top: classes, functions, constants, imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return found


def _by_module(tree: ast.Module, names: Names) -> bool:
    """Whether a file imports a module, as a module, that has renamed names."""
    modules = {module for module, _ in names}
    return any(f"{module}.{name}" in modules for module, name, _ in imports_of(tree))


def _passed_on(tree: ast.Module, name: str) -> bool:
    return any(known == name for _, _, known in imports_of(tree))


class _Modules(cst.CSTTransformer):
    """Imports, and the names that imported modules go by in this file."""

    def __init__(self, text: str, words: Words) -> None:
        super().__init__()
        self.words = words
        self.notes: list[str] = []
        self._renamed: dict[int, str] = {}
        self._text = text
        tree = ast.parse(text)
        self._imports = list(imports_of(tree))
        self._used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        self._used |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        self._used |= {known for _, _, known in self._imports}

    def run(self) -> Outcome:
        """Return the new text."""
        if not any(self._moves(m, n) for m, n, _ in self._imports):
            return Outcome(self._text)
        wrapper = MetadataWrapper(cst.parse_module(self._text), unsafe_skip_copy=True)
        self._local = self._plan(wrapper)
        return Outcome(wrapper.module.visit(self).code, self.notes)

    def _moves(self, module: str, name: str) -> bool:
        return module in self.words.modules or f"{module}.{name}" in self.words.modules

    def _plan(self, wrapper: MetadataWrapper) -> dict[str, str]:
        """Choose what an imported module that is called otherwise now goes by here."""
        local: dict[str, str] = {}
        for module, name, known in self._imports:
            goal = self.words.modules.get(f"{module}.{name}")
            base = goal.rpartition(".")[2] if goal else name
            if goal and base != name and known == name:
                if base in self._used:
                    self.notes.append(f"{base} is used for something else: kept `as {name}`")
                else:
                    local[name] = base
        scopes = set(wrapper.resolve(ScopeProvider).values())
        for scope in scopes:
            if not isinstance(scope, GlobalScope):
                continue
            for assignment in scope.assignments:
                if isinstance(assignment, ImportAssignment) and assignment.name in local:
                    for access in assignment.references:
                        self._renamed[id(access.node)] = local[assignment.name]
                        if isinstance(access.node, cst.Attribute):
                            self._renamed[id(_first(access.node))] = local[assignment.name]
        return local

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        new = self._renamed.get(id(original_node))
        return updated_node.with_changes(value=new) if new else updated_node

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        (statement, *more) = original_node.body
        if more or not isinstance(statement, cst.ImportFrom) or statement.module is None:
            return updated_node
        module = cst.Module([]).code_for_node(statement.module)
        assert not isinstance(statement.names, cst.ImportStar)
        groups: dict[str, list[cst.ImportAlias]] = {}
        for alias in statement.names:
            goal, made = self._alias(module, alias)
            groups.setdefault(goal, []).append(made)
        if list(groups) == [module] and all(
            made is alias for made, alias in zip(groups[module], statement.names, strict=True)
        ):
            return updated_node
        lines: list[cst.SimpleStatementLine] = []
        for goal, aliases in groups.items():
            lines.append(updated_node.with_changes(
                leading_lines=[] if lines else updated_node.leading_lines,
                body=[_import(statement, goal, aliases)],
            ))  # fmt: skip
        return cst.FlattenSentinel(lines)

    def _alias(self, module: str, alias: cst.ImportAlias) -> tuple[str, cst.ImportAlias]:
        name = alias.evaluated_name
        goal = self.words.modules.get(f"{module}.{name}")
        if goal is None:
            return self.words.modules.get(module, module), alias
        parent, _, base = goal.rpartition(".")
        asname = alias.asname
        if base != name and asname is None and name not in self._local:
            space = cst.SimpleWhitespace(" ")
            asname = cst.AsName(cst.Name(name), space, space)
        return parent, alias.with_changes(name=cst.Name(base), asname=asname)


def _import(
    statement: cst.ImportFrom, module: str, aliases: Sequence[cst.ImportAlias]
) -> cst.ImportFrom:
    last = aliases[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    rest = [a if _comma(a) else a.with_changes(comma=_plain_comma()) for a in aliases[:-1]]
    made = statement.with_changes(
        module=cst.parse_expression(module), names=[*rest, last], lpar=None, rpar=None
    )
    if statement.lpar is None:
        return made
    names = [a.with_changes(comma=_plain_comma()) for a in aliases[:-1]]
    return made.with_changes(names=[*names, last], lpar=cst.LeftParen(), rpar=cst.RightParen())


def _comma(alias: cst.ImportAlias) -> bool:
    return isinstance(alias.comma, cst.Comma)


def _plain_comma() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _first(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, cst.Attribute):
        node = node.value
    return node


class _Names(cst.CSTTransformer):
    """Classes, functions, constants; and methods or fields by their plain name."""

    def __init__(
        self, wrapper: MetadataWrapper, mine: Mapping[str, str], names: Names,
        attributes: Mapping[str, str],
    ) -> None:  # fmt: skip
        super().__init__()
        self._attributes = attributes
        self._mine = mine
        self._names = names
        self._renamed: dict[int, str] = {}
        self._modules: dict[int, str] = {}
        for scope in set(wrapper.resolve(ScopeProvider).values()):
            if isinstance(scope, GlobalScope):
                self._plan(scope)
        self._depth = 0

    def _plan(self, scope: GlobalScope) -> None:
        for assignment in scope.assignments:
            imported = isinstance(assignment, ImportAssignment)
            full = assignment.get_qualified_names_for(assignment.name) if imported else set()
            origin = next(iter(full)).name if full else ""
            module, _, name = origin.rpartition(".")
            new = self._mine.get(assignment.name)
            if imported and (module, name) in self._names:
                same = assignment.name == name
                new = self._names[module, name] if same else None
            for access in assignment.references:
                first = _first(access.node) if isinstance(access.node, cst.CSTNode) else None
                if new and first is not None:
                    self._renamed[id(first)] = new
                elif imported and first is not None:
                    self._modules[id(first)] = origin
            if new and not imported:
                self._define(assignment, new)

    def _define(self, assignment: object, new: str) -> None:
        node = getattr(assignment, "node", None)
        if isinstance(node, (cst.ClassDef, cst.FunctionDef)):
            self._renamed[id(node.name)] = new
        elif isinstance(node, cst.Name):
            self._renamed[id(node)] = new

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        new = self._renamed.get(id(original_node))
        return updated_node.with_changes(value=new) if new else updated_node

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.Attribute:
        name = original_node.attr.value
        module = self._modules.get(id(original_node.value), "")
        new = self._names.get((module, name)) or self._attributes.get(name)
        return updated_node.with_changes(attr=cst.Name(new)) if new else updated_node

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom:
        if isinstance(updated_node.names, cst.ImportStar) or original_node.module is None:
            return updated_node
        module = cst.Module([]).code_for_node(original_node.module)
        made = []
        for alias in updated_node.names:
            new = self._names.get((module, alias.evaluated_name))
            same = alias.asname is not None and alias.evaluated_alias == alias.evaluated_name
            if new and same and alias.asname:
                alias = alias.with_changes(asname=alias.asname.with_changes(name=cst.Name(new)))
            made.append(alias.with_changes(name=cst.Name(new)) if new else alias)
        return updated_node.with_changes(names=made)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._depth += 1

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        self._depth -= 1
        return updated_node

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        new = self._attributes.get(original_node.name.value)
        if new and self._depth:
            return updated_node.with_changes(name=cst.Name(new))
        return updated_node

    def leave_AnnAssign(
        self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign
    ) -> cst.AnnAssign:
        target = original_node.target
        if self._depth and isinstance(target, cst.Name) and target.value in self._attributes:
            return updated_node.with_changes(target=cst.Name(self._attributes[target.value]))
        return updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        if original_node.keyword and original_node.keyword.value in self._attributes:
            new = self._attributes[original_node.keyword.value]
            return updated_node.with_changes(keyword=cst.Name(new))
        return updated_node


class _Strings(cst.CSTTransformer):
    """Strings and comments."""

    def __init__(self, change: Callable[[str], str]) -> None:
        super().__init__()
        self._change = change

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        return updated_node.with_changes(value=self._change(updated_node.value))

    def leave_FormattedStringText(
        self, original_node: cst.FormattedStringText, updated_node: cst.FormattedStringText
    ) -> cst.FormattedStringText:
        return updated_node.with_changes(value=self._change(updated_node.value))

    def leave_Comment(self, original_node: cst.Comment, updated_node: cst.Comment) -> cst.Comment:
        return updated_node.with_changes(value=self._change(updated_node.value))


class _Annotations(cst.CSTTransformer):
    """Names in annotations that are strings, and in `__all__`."""

    def __init__(self, known: Mapping[str, str]) -> None:
        super().__init__()
        self._known = known
        self._inside = 0

    def visit_Annotation(self, node: cst.Annotation) -> None:
        self._inside += 1

    def leave_Annotation(
        self, original_node: cst.Annotation, updated_node: cst.Annotation
    ) -> cst.Annotation:
        self._inside -= 1
        return updated_node

    def visit_Assign(self, node: cst.Assign) -> None:
        self._inside += _is_all(node)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        self._inside -= _is_all(original_node)
        return updated_node

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        if not self._inside:
            return updated_node
        return updated_node.with_changes(value=replace_words(updated_node.value, self._known))


def _is_all(node: cst.Assign) -> bool:
    target = node.targets[0].target
    return isinstance(target, cst.Name) and target.value == "__all__"


def known_words(tree: ast.Module, module: str, names: Names) -> dict[str, str]:
    """Return the renamed names that a file knows: its own, and those it imports."""
    found = {name: new for (where, name), new in names.items() if where == module}
    for where, name, known in imports_of(tree):
        if (where, name) in names and known == name:
            found[name] = names[where, name]
    return found
