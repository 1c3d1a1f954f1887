"""An expression as a library without fusion computes it: one call after another, into memory that is there."""

import ast

from peer import NAMES


def steps(case, operands, functions, out):
    """A call that computes the case's expression with the library's functions, the last into `out`.

    `functions` maps names of Python's operators and functions to the library's, which take `out=`
    unless they are in `functions["allocating"]`. An intermediate result is overwritten by the next
    one where it fits.
    """
    names, calls, made = dict(zip(NAMES, operands)), [], set()

    def value(node):
        if isinstance(node, ast.Name):
            return names[node.id]
        if isinstance(node, ast.Subscript):
            return eval(ast.unparse(node), dict(names))
        if isinstance(node, ast.BinOp):
            square = isinstance(node.op, ast.Pow) and ast.literal_eval(node.right) == 2
            args = [node.left] if square else [node.left, node.right]
            return apply("square" if square else type(node.op).__name__, args, {})
        if isinstance(node, ast.Compare):
            return apply(type(node.ops[0]).__name__, [node.left, *node.comparators], {})
        if isinstance(node, ast.Call):
            options = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
            return apply(node.func.id, node.args, options)
        raise NotImplementedError(ast.unparse(node))

    def apply(name, args, options):
        call, args = functions[name], [value(arg) for arg in args]
        place = call(*args, **options)
        if name not in functions["allocating"]:
            fits = (arg for arg in args if id(arg) in made and like(arg, place))
            place = next(fits, place)
            options = {**options, "out": place}
        made.add(id(place))
        calls.append((call, args, options))
        return place

    result = value(ast.parse(case["op"], mode="eval").body)
    if out is not None and "out" in calls[-1][2]:
        assert like(out, result)
        calls[-1] = (*calls[-1][:2], {**calls[-1][2], "out": out})
    if len(calls) == 1:
        call, args, options = calls[0]
        if out is None:
            options.pop("out", None)
        return lambda: call(*args, **options)

    def run():
        for call, args, options in calls:
            call(*args, **options)

    return run


def like(one, other):
    return one.dtype == other.dtype and tuple(one.shape) == tuple(other.shape)
