# Scripts with `return` outside of a function. Their statements become the body of a function, whose
# variables are those of the module.


def wrapped(source):
    """The code of a script that returns, as a coroutine."""
    tree = ast.parse(source, SCRIPT, "exec")
    names = ModuleNames()
    tree.body = [names.visit(statement) for statement in tree.body]
    future = []
    while tree.body and is_future(tree.body[0]):
        future.append(tree.body.pop(0))
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        tree.body[-1] = ast.copy_location(ast.Return(last.value), last)
    body = [ast.Global(sorted(names.bound))] if names.bound else []
    # The template has all fields that this version of Python knows.
    template = ast.parse("async def script():\n pass")
    template.body[0].body = body + tree.body or [ast.Pass()]
    template.body = future + template.body
    ast.fix_missing_locations(template)
    module = compile(template, SCRIPT, "exec", dont_inherit=True)
    code = next(part for part in module.co_consts if isinstance(part, types.CodeType))
    return in_module(code, "<module>")


def is_future(statement):
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def in_module(code, name):
    """The code with the names that its functions would have in a module."""
    parts = tuple(
        in_module(part, None) if isinstance(part, types.CodeType) else part for part in code.co_consts
    )
    qualified = code.co_qualname.removeprefix("script.<locals>.")
    if name is not None:
        return code.replace(co_consts=parts, co_name=name, co_qualname=name)
    return code.replace(co_consts=parts, co_qualname=qualified)


class ModuleNames(ast.NodeTransformer):
    """Finds the names that the statements of a module bind, and changes what functions cannot have."""

    def __init__(self):
        self.bound = set()

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)
        return node

    def visit_FunctionDef(self, node):
        self.bound.add(node.name)
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [default and self.visit(default) for default in node.args.kw_defaults]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.bound.add(node.name)
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        node.bases = [self.visit(base) for base in node.bases]
        return node

    def visit_Lambda(self, node):
        return node

    def visit_comprehension_parts(self, node):
        # Targets belong to the comprehension. What `:=` binds does not.
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name):
                self.bound.add(part.target.id)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_parts

    def visit_Import(self, node):
        for alias in node.names:
            self.bound.add(alias.asname or alias.name.partition(".")[0])
        return node

    def visit_ImportFrom(self, node):
        if [alias.name for alias in node.names] == ["*"]:
            text = f"__import__('builtins').toolgate_import_all({node.module!r}, globals())"
            return ast.copy_location(ast.parse(text).body[0], node)
        for alias in node.names:
            self.bound.add(alias.asname or alias.name)
        return node

    def visit_ExceptHandler(self, node):
        if node.name:
            self.bound.add(node.name)
        return self.generic_visit(node)

    def visit_MatchAs(self, node):
        if node.name:
            self.bound.add(node.name)
        return self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node):
        if node.rest:
            self.bound.add(node.rest)
        return self.generic_visit(node)

    def visit_TypeAlias(self, node):
        self.bound.add(node.name.id)
        return node

    def visit_Global(self, node):
        self.bound.update(node.names)
        return ast.copy_location(ast.Pass(), node)

    def visit_AnnAssign(self, node):
        # A name with a type cannot be global.
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Expr(node.annotation), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Call(self, node):
        self.generic_visit(node)
        # In a module these use the variables of the module.
        if isinstance(node.func, ast.Name) and not node.keywords:
            name, given = node.func.id, len(node.args)
            if name in ("locals", "vars") and not given:
                node.func.id = "globals"
            elif name in ("exec", "eval") and given == 1:
                call = ast.parse("globals()", mode="eval").body
                node.args.append(ast.copy_location(call, node))
        return node

    def visit_Yield(self, node):
        raise SyntaxError("'yield' outside function", (SCRIPT, node.lineno, node.col_offset + 1, None))

    visit_YieldFrom = visit_Yield


def import_all_names(module, variables):
    module = importlib.import_module(module)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        variables[name] = getattr(module, name)
