"""Executes stubs.py and looks at what it defined."""
import ast, builtins, inspect, json, keyword, pathlib, sys, types, typing

# A module like any other, because that is where Python looks for the names in annotations.
module = sys.modules["stubs"] = types.ModuleType("stubs")
namespace = module.__dict__
exec(compile(pathlib.Path("stubs.py").read_bytes(), "stubs.py", "exec"), namespace)
defined = {name: value for name, value in namespace.items() if not name.startswith("__")}

# Types that are written as text, because they name themselves or what comes later.
aliases = {name: value for name, value in defined.items() if isinstance(value, str)}
for name, text in aliases.items():
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Name):
            assert node.id in namespace or hasattr(builtins, node.id), (name, node.id)

namespace.update({name: typing.Any for name in aliases})
for value in list(defined.values()):
    if typing.is_typeddict(value):
        typing.get_type_hints(value, include_extras=True)

expected = json.loads(pathlib.Path("parameters.json").read_bytes())
functions = [value for value in defined.values() if inspect.iscoroutinefunction(value)]
assert len(functions) == len(expected), (len(functions), len(expected))
for function, names in zip(functions, expected):
    typing.get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    assert positional == names[: len(positional)], (function, positional, names)
    assert set(positional + by_name) <= set(names), (function, names)
    others = set(names) - set(positional + by_name)
    for name in others:
        plain = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
        assert not plain or name == "__debug__", (function, name)
    if others:
        assert any(p.kind is p.VAR_KEYWORD for p in parameters), function
print(len(functions), "functions")
