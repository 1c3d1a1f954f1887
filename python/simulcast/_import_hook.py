"""`install_import_hook`: the operators of a package ask the policy, whatever library its arrays are of.

Modules of the named packages are compiled with their binary operators, comparisons and calls of `where` replaced by
calls of this file, which know where each stands and how its operands are written. Nothing else is changed, and nothing
of other packages.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import operator
import sys
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _fixes, _places, _policy
from ._errors import BroadcastError
from ._simulcast import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType

    from ._simulcast import Policy

# What cannot be a name in a program.
_NAME = "@simulcast"
_MEMO_MAX = 1 << 14
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_UFUNCS = {
    "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "power", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
    "rshift": "right_shift", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip
_IN_PLACE = frozenset(getattr(operator, f"i{name.rstrip('_')}", None) for name in _OPERATORS.values()) - {None}
# What takes operands by another rule: nothing is judged, errors are explained.
_PRODUCT = operator.matmul
_IN_PLACE_PRODUCT = operator.imatmul
# Libraries whose objects have shapes and meet by another rule.
_BY_LABEL = frozenset(("pandas", "polars", "xarray", "geopandas"))
_REDUCTIONS = frozenset(("sum", "mean", "nansum", "nanmean", "norm"))
_KEEPS = frozenset(
    "abs absolute square sqrt exp log log1p pow power where clip clamp maximum minimum tanh float astype".split()
)


class _Site(NamedTuple):
    """A rewritten operation."""

    function: Callable[..., Any]
    called: str
    names: tuple[str, ...]
    deliberate: bool
    reduced: bool
    place: _places.Place


class ImportHook:
    """What `install_import_hook` gives: `uninstall` ends it, as does the end of a `with` block."""

    def __init__(self, packages: tuple[str, ...], finder: _Finder) -> None:
        self.packages = packages
        """The packages whose modules are rewritten."""
        self._finder = finder

    def uninstall(self) -> None:
        """Modules that are imported from now on are left as they are; those that are imported stay as they became."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    def __enter__(self) -> ImportHook:
        return self

    def __exit__(self, *exception: object) -> None:
        self.uninstall()

    def __repr__(self) -> str:
        return f"<simulcast.ImportHook of {', '.join(self.packages)}>"


def install_import_hook(*packages: str) -> ImportHook:
    """From now on, modules of these packages ask the policy where arrays meet: `install_import_hook("mypackage")`.

    Binary operators, comparisons and calls of `where` are judged, for arrays of any library (NumPy, CuPy, JAX, PyTorch);
    findings name the operands as they are written, and errors of shapes get a note with our explanation, those of `@` too.
    Modules that are imported already stay as they are, of which a warning tells, as do those with expressions too deep to
    be rewritten (sums of hundreds of terms). No other package is touched. Use it as a context manager to end it.

    >>> import simulcast
    >>> hook = simulcast.install_import_hook("mypackage")
    >>> hook.uninstall()
    """
    for own in packages:
        if not isinstance(own, str) or not all(part.isidentifier() for part in own.split(".")):
            raise ValueError(f"install_import_hook takes names of packages, not {own!r}")
    if not packages:
        raise ValueError("install_import_hook takes names of packages, such as 'mypackage'")
    found = [(name, own) for name, own in list(sys.modules.items()) if _is_of(name, packages)]
    there = sorted(name for name, own in found if _NAME not in getattr(own, "__dict__", {}) and not _is_beginning(own))
    if there:
        few = ", ".join(there[:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
        warnings.warn(
            f"install_import_hook came too late for {few}: modules that are imported already are not judged; call it before "
            "they are imported",
            RuntimeWarning,
            stacklevel=2,
        )
    finder = _Finder(packages)
    sys.meta_path.insert(0, finder)
    return ImportHook(packages, finder)


def _is_of(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == own or name.startswith(f"{own}.") for own in packages)


def _is_beginning(module: ModuleType) -> bool:
    """Whether a module is just being imported: a package may call the hook for its own parts."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


class _Finder:
    """Finds modules of packages as they would be found, and loads them rewritten."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of a module of ours, with our loader; `None` for others."""
        if not _is_of(name, self._packages):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return spec
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module rewritten, past the cache of compiled modules; `get_code` gives the module as it is."""

    def exec_module(self, module: ModuleType) -> None:
        rewritten = self._rewritten(module.__name__)
        if rewritten is None:
            super().exec_module(module)
            return
        code, sites = rewritten
        module.__dict__[_NAME] = _Caller(sites)
        exec(code, module.__dict__)

    def _rewritten(self, name: str) -> tuple[CodeType, list[_Site]] | None:
        """The code of a module and its operations; `None` where it is too deep: rewriting takes more of the stack than
        compiling.
        """
        path = self.get_filename(name)
        source = self.get_data(path)
        try:
            tree = ast.parse(source, path)
            rewriter = _Rewriter(path, importlib.util.decode_source(source))
            rewritten = ast.fix_missing_locations(rewriter.visit(tree))
            return compile(rewritten, path, "exec", dont_inherit=True), rewriter.sites
        except RecursionError:
            return None


class _Rewriter(ast.NodeTransformer):
    """Replaces operations by calls with the number of their site."""

    def __init__(self, file: str, text: str) -> None:
        # To Python, nothing else ends a line; `str.splitlines` has more.
        self._lines = text.split("\n")
        self._file = file
        self.sites: list[_Site] = []
        self._reduced: set[int] = set()

    # Annotations are types, and may be read as text.

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        fields = ("returns", "type_params")
        held = {name: node.__dict__.pop(name) for name in fields if name in node.__dict__}
        self.generic_visit(node)
        node.__dict__.update(held)
        return node

    def visit_TypeAlias(self, node: ast.AST) -> ast.AST:
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return self._operation(node, node.op, node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) != 1:
            return self.generic_visit(node)
        return self._operation(node, node.ops[0], node.left, node.comparators[0])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        name = "matmul" if isinstance(node.op, ast.MatMult) else _OPERATORS.get(type(node.op))
        if not isinstance(node.target, ast.Name) or name is None or isinstance(node.value, ast.Constant):
            return self.generic_visit(node)
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = self._call(node, getattr(operator, f"i{name.rstrip('_')}"), _UFUNCS.get(name, name), [read, node.value])
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self._mark(node)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        plain = not node.keywords and not any(isinstance(own, ast.Starred) for own in node.args)
        if called != "where" or len(node.args) != 3 or not plain:
            return self.generic_visit(node)
        number = self._site(node, _called, "where", node.args)
        visited = [self.visit(own) for own in (node.func, *node.args)]
        return ast.copy_location(ast.Call(self._caller(), [ast.Constant(number), *visited], []), node)

    def _operation(self, node: ast.expr, op: ast.AST, left: ast.expr, right: ast.expr) -> ast.AST:
        name = "matmul" if isinstance(op, ast.MatMult) else _OPERATORS.get(type(op))
        texts = isinstance(left, (ast.Constant, ast.JoinedStr)) or isinstance(right, (ast.Constant, ast.JoinedStr))
        if name is None or texts:
            return self.generic_visit(node)
        return self._call(node, getattr(operator, name), _UFUNCS.get(name, name), [left, right])

    def _call(
        self, node: ast.expr | ast.stmt, function: Callable[..., Any], called: str, operands: list[ast.expr]
    ) -> ast.Call:
        number = self._site(node, function, called, operands)
        visited = [self.visit(own) for own in operands]
        return ast.copy_location(ast.Call(self._caller(), [ast.Constant(number), *visited], []), node)

    def _site(
        self, node: ast.expr | ast.stmt, function: Callable[..., Any], called: str, operands: Sequence[ast.expr]
    ) -> int:
        names = tuple(_places.written(own) or chr(ord("A") + place) for place, own in enumerate(operands))
        deliberate = any(map(_places.makes_ones, operands))
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        place = _places.place_in(self._lines, self._file, node.lineno, end_line, node.col_offset, end)
        self.sites.append(_Site(function, called, names, deliberate, id(node) in self._reduced, place))
        return len(self.sites) - 1

    def _caller(self) -> ast.expr:
        return ast.Name(_NAME, ast.Load())

    def _mark(self, node: ast.Call) -> None:
        """Marks the operations whose whole result a call reduces to one number."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in _REDUCTIONS or node.keywords:
            return
        if len(node.args) == 1 and isinstance(node.func.value, ast.Name):
            self._mark_elements(node.args[0])
        elif not node.args:
            self._mark_elements(node.func.value)

    def _mark_elements(self, node: ast.AST) -> None:
        if isinstance(node, ast.BinOp):
            self._reduced.add(id(node))
            self._mark_elements(node.left)
            self._mark_elements(node.right)
        elif isinstance(node, ast.UnaryOp):
            self._mark_elements(node.operand)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
            self._reduced.add(id(node))
            for own in (node.func.value, *node.args):
                self._mark_elements(own)


def _called(function: Callable[..., Any], *operands: Any) -> Any:
    return function(*operands)


class _Caller:
    """Does what an operation of a module does, and judges the shapes that meet."""

    def __init__(self, sites: list[_Site]) -> None:
        self._sites = sites
        self._quiet: set[tuple[Any, ...]] = set()
        self._policy: Policy | None = None

    def __call__(self, number: int, *operands: Any) -> Any:
        site = self._sites[number]
        # The first argument of a call is the function that is called.
        arrays = operands[1:] if site.function is _called else operands
        shapes = [_shape(own) for own in arrays]
        is_product = site.function in (_PRODUCT, _IN_PLACE_PRODUCT)
        if not is_product and (shapes[0] != shapes[1] or (len(shapes) == 3 and shapes[2] != shapes[0])):
            self._meet(site, arrays, shapes)
        try:
            return site.function(*operands)
        except (ValueError, TypeError, RuntimeError) as error:
            _note(error, site, arrays, shapes)
            raise

    def _meet(self, site: _Site, arrays: Sequence[Any], shapes: Sequence[Any]) -> None:
        kept = [place for place, shape in enumerate(shapes) if _is_shape(shape)]
        if len(kept) < 2 or any(_root(own) in _BY_LABEL for own in arrays):
            return
        met = tuple(tuple(shapes[place]) for place in kept)
        policy = _policy._current()
        if policy is not self._policy or len(self._quiet) > _MEMO_MAX:
            self._policy, self._quiet = policy, set()
        if met in self._quiet and _policy._record.get() is None:
            return
        names = [site.names[place] for place in kept]
        try:
            judged = policy._judge(met, names=names, reduced=site.reduced, deliberate=site.deliberate)
        except ValueError:
            # The library refuses it too, or takes it by a rule of its own.
            return
        _, raised, refused, warned, unconfirmed = judged
        if refused is None and not warned and not unconfirmed and not site.deliberate:
            self._quiet.add(met)
        try:
            _policy.tell(site.called, met, "numpy", names, (site.reduced, site.deliberate), judged)
        except BroadcastError as error:
            _places.add_note(error, f"{site.place}\n{site.place.picture()}")
            raise


def _shape(value: Any) -> tuple[Any, ...] | None:
    """The shape of an operand, where it has one; whatever else is called so is not ours to fail at."""
    try:
        shape = getattr(value, "shape", None)
    except Exception:
        return None
    return shape if isinstance(shape, tuple) else None


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, tuple) and all(isinstance(size, int) for size in shape)


def _root(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _note(error: Exception, site: _Site, arrays: Sequence[Any], shapes: Sequence[Any]) -> None:
    """Explains an error of an operation whose shapes do not broadcast."""
    known = [() if isinstance(own, (int, float, complex)) else shape for own, shape in zip(arrays, shapes)]
    if isinstance(error, BroadcastError) or not all(map(_is_shape, known)):
        return
    met = [tuple(own) for own in known]
    if site.function in (_PRODUCT, _IN_PLACE_PRODUCT):
        lines = _fixes.product(site.names, met)
        if lines:
            sizes = [f"  {name} is {shape}" for name, shape in zip(site.names, met)]
            _places.add_note(error, "\n".join([f"simulcast: {site.place}", site.place.picture(), *sizes, *lines]))
        return
    explained = explain(*met, names=list(site.names))
    if explained.shape is not None:
        if site.function in _IN_PLACE and tuple(explained.shape) != met[0]:
            lines = [f"the result is {explained.shape}, and it is stored in {site.names[0]}, which is {met[0]} and cannot grow"]
            lines += [f"  {name} is {shape}" for name, shape in zip(site.names, met)]
            _places.add_note(error, "\n".join([f"simulcast: {site.place}", site.place.picture(), *lines]))
        return
    torch = any(_root(own) == "torch" for own in arrays)
    fixes = _fixes.of_error(explained.to_dict(), site.names, torch=torch)
    lines = [line for line in str(explained).rstrip().splitlines() if not line.startswith("  help ")]
    lines += [f"  help     {own.fix}" for own in fixes]
    _places.add_note(error, "\n".join([f"simulcast: {site.place}", site.place.picture(), *lines]))
