"""Record types: the numba types of records (core/kernels/records.py), their attributes and constructors."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, Final, cast

from core.kernels.native.inner_kernel import InnerKernel
from core.kernels.native.signatures import name_type, resolved

# numba and llvmlite have partial and sometimes wrong types, so they count as untyped.
numba: Any = importlib.import_module("numba")
extending: Any = importlib.import_module("numba.extending")
imputils: Any = importlib.import_module("numba.core.imputils")
templates: Any = importlib.import_module("numba.core.typing.templates")
cgutils: Any = importlib.import_module("numba.core.cgutils")
ir: Any = importlib.import_module("llvmlite.ir")
types: Any = numba.types

INTS: Final = types.CPointer(types.int64)
FLOATS: Final = types.CPointer(types.float64)
ARRAY: Final = types.Array(types.int64, 1, "C")
"""The words of a record in Python."""
MEMBERS: Final = {"ints": INTS, "floats": FLOATS, "start": types.int64}


class RecordType(types.Type):  # type: ignore[misc]
    """The numba type of the records of one class."""

    def __init__(self, record: type, fields: dict[str, tuple[int, Any]], is_constant: bool) -> None:
        """Take the class, the offset and numba type of each field, and whether no kernel writes them."""
        self.record = record
        self.fields = fields
        self.is_constant = is_constant
        super().__init__(f"Record({record.__module__}.{record.__qualname__})")


@extending.register_model(RecordType)
class RecordModel(extending.models.StructModel):  # type: ignore[misc]
    """A record in registers: a pointer and a number; both views of the words begin at the pointer."""

    def __init__(self, manager: Any, record_type: Any) -> None:
        super().__init__(manager, record_type, [("ints", INTS), ("start", types.int64)])


_types: dict[type, RecordType] = {}
_kernels: dict[tuple[str, str], Any] = {}
"""The inner kernels of methods and properties, by the names of the type and of the attribute."""
_properties: set[tuple[str, str]] = set()
"""Those of the names above that are properties."""


def type_of(record: type) -> Any:
    """Return the numba type of a class of records."""
    return _types[record]


def declare(
    record: type, fields: dict[str, tuple[int, bool, bool]], *, is_named: bool, is_constant: bool
) -> None:
    """Register a class of records with numba: its type, constructor, methods and properties.

    fields: by name the offset, whether the words are floats, and whether the name stands for all words from
    there on. is_named: signatures may use the name of the class. is_constant: no kernel writes the words.
    """
    kinds = {
        (False, False): types.int64,
        (True, False): types.float64,
        (False, True): INTS,
        (True, True): FLOATS,
    }
    typed = {name: (offset, kinds[is_float, is_many]) for name, (offset, is_float, is_many) in fields.items()}
    record_type = RecordType(record, typed, is_constant)
    _types[record] = record_type
    extending.typeof_impl.register(record)(lambda _record, _context: record_type)
    if is_named:
        name_type(record.__name__, record_type)
    if numba.config.DISABLE_JIT:
        return

    @extending.type_callable(record)
    def _typed(_context: Any) -> Callable[..., Any]:
        return lambda ints, floats, start: record_type

    @extending.lower_builtin(record, types.Any, types.Any, types.Any)
    def _make(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        proxy = cgutils.create_struct_proxy(record_type)(context, builder)
        proxy.ints = arguments[0]
        proxy.start = context.cast(builder, arguments[2], signature.args[2], types.int64)
        return proxy._getvalue()  # noqa: SLF001

    for name, value in vars(record).items():
        key = record_type.name, name
        if isinstance(value, property):
            _kernels[key] = InnerKernel(cast("Callable[..., Any]", value.fget), is_inlined=True)
            _properties.add(key)
        elif inspect.isfunction(value) and not name.startswith("__"):
            _kernels[key] = InnerKernel(value, is_inlined=True)
            extending.lower_builtin(key, types.VarArg(types.Any))(functools.partial(_call, key))


def _call(key: tuple[str, str], context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Call the inner kernel of a method or property."""
    function = _kernels[key]._numba_type_
    chosen = function.get_call_type(context.typing_context, signature.args, {})
    run = context.get_function(function, chosen)
    context.add_linking_libs(getattr(run, "libs", ()))
    return run(builder, arguments)


@extending.unbox(RecordType)
def _unbox(record_type: Any, record: Any, c: Any) -> Any:
    """Make a record of Python one of a kernel; the Python record keeps its words alive meanwhile."""
    proxy = cgutils.create_struct_proxy(record_type)(c.context, c.builder)
    words, start = (c.pyapi.object_getattr_string(record, name) for name in ("ints", "start"))
    unboxed = c.unbox(ARRAY, words)
    with c.builder.if_then(c.builder.not_(unboxed.is_error)):
        proxy.ints = c.context.make_array(ARRAY)(c.context, c.builder, unboxed.value).data
        c.context.nrt.decref(c.builder, ARRAY, unboxed.value)
    number = c.pyapi.number_long(start)
    proxy.start = c.pyapi.long_as_longlong(number)
    for python_object in (words, start, number):
        c.pyapi.decref(python_object)
    return extending.NativeValue(
        proxy._getvalue(),  # noqa: SLF001
        is_error=c.builder.or_(unboxed.is_error, cgutils.is_not_null(c.builder, c.pyapi.err_occurred())),
    )


@templates.infer_getattr
class RecordAttributes(templates.AttributeTemplate):  # type: ignore[misc]
    """The types of the attributes of records."""

    key = RecordType

    def generic_resolve(self, record_type: Any, name: str) -> Any:
        """Return the type of an attribute; None: records of this type have no such attribute."""
        if name in MEMBERS:
            return MEMBERS[name]
        if name in record_type.fields:
            return record_type.fields[name][1]
        key = record_type.name, name
        if key in _properties:
            function = _kernels[key]._numba_type_
            return function.get_call_type(self.context, (record_type,), {}).return_type
        return types.BoundFunction(_method(key), record_type) if key in _kernels else None


@functools.cache
def _method(key: tuple[str, str]) -> Any:
    """Return numba's template of a method."""

    def generic(self: Any, arguments: Any, named: Any) -> Any:
        function = _kernels[key]._numba_type_
        chosen = function.get_call_type(self.context, (self.this, *arguments), named)
        return templates.Signature(chosen.return_type, chosen.args[1:], self.this)

    return type(f"Method_{key[1]}", (templates.AbstractTemplate,), {"key": key, "generic": generic})


def _words(context: Any, builder: Any, record: Any, kind: Any) -> Any:
    """Return the pointer to the first word of a record's buffer, for words of a kind."""
    if kind in (types.float64, FLOATS):
        return builder.bitcast(record.ints, context.get_value_type(FLOATS))
    return record.ints


def _place(context: Any, builder: Any, record_type: Any, value: Any, name: str) -> Any:
    """Return the pointer to a field's word."""
    record = cgutils.create_struct_proxy(record_type)(context, builder, value=value)
    at, kind = record_type.fields[name]
    position = builder.add(record.start, ir.Constant(ir.IntType(64), at))
    return builder.gep(_words(context, builder, record, kind), [position])


@imputils.lower_getattr_generic(RecordType)
def _read(context: Any, builder: Any, record_type: Any, value: Any, name: str) -> Any:
    if name in MEMBERS:
        record = cgutils.create_struct_proxy(record_type)(context, builder, value=value)
        return record.start if name == "start" else _words(context, builder, record, MEMBERS[name])
    if name in record_type.fields:
        place = _place(context, builder, record_type, value, name)
        if record_type.fields[name][1] in (INTS, FLOATS):
            return place
        word = builder.load(place)
        if record_type.is_constant:  # else every store would make the compiler load it again
            word.set_metadata("invariant.load", builder.module.add_metadata([]))
        return word
    signature = templates.signature(types.void, record_type)
    return _call((record_type.name, name), context, builder, signature, (value,))


@imputils.lower_setattr_generic(RecordType)
def _write(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    record_type = signature.args[0]
    if record_type.is_constant:
        record = record_type.record.__qualname__
        msg = f"{record}.{name} must not be written by a kernel: {record}.is_constant is true"
        raise numba.errors.TypingError(msg)
    builder.store(arguments[1], _place(context, builder, signature.args[0], arguments[0], name))


def declare_tuple(kind: Any, fields: tuple[str, ...]) -> None:
    """Let signatures use the name of a class of named tuples."""
    members = [resolved(f"void({field})").args[0] for field in fields]
    is_uniform = len(set(members)) == 1
    tuple_type = (
        types.NamedUniTuple(members[0], len(members), kind) if is_uniform else types.NamedTuple(members, kind)
    )
    name_type(kind.__name__, tuple_type)


@extending.lower_cast(types.BaseNamedTuple, types.BaseNamedTuple)
def _cast_tuple(context: Any, builder: Any, from_tuple: Any, to_tuple: Any, value: Any) -> Any:
    """Cast a named tuple field by field, for instance from a literal number."""
    fields = cgutils.unpack_tuple(builder, value, len(from_tuple))
    cast = [
        context.cast(builder, field, from_type, to_type)
        for field, from_type, to_type in zip(fields, from_tuple, to_tuple, strict=True)
    ]
    return context.make_tuple(builder, to_tuple, cast)
