"""Sixteen float32 numbers as one value in numba's compiled code, the width of the networks' hidden layers.

Numba does not vectorise the loops over pairs of objects by itself; with a type for sixteen numbers and these operations
on it, LLVM keeps them in vector registers of whatever width the processor has. An array argument is flat, of float32,
and ``at`` is the place of the first number in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

LANES = 16

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)
_FUSED = ("contract",)  # a product and a sum may become one instruction


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"float32x{LANES}")


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: types.Type) -> None:
        super().__init__(manager, kind, _VECTOR)


_LANES = _Lanes()


def _address(context: Any, builder: Any, kind: types.Array, array: Any, at: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


@intrinsic
def zeros(typing_context: Any) -> tuple[Any, Callable[..., Any]]:
    """Sixteen zeros."""
    return _LANES(), lambda context, builder, signature, args: _ZERO


@intrinsic
def load(typing_context: Any, array: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """array[at : at + 16]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], *args)
        return builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=4)

    return _LANES(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, at: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """array[at : at + 16] = value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], *args[:2])
        builder.store(args[2], builder.bitcast(address, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, _LANES), generate


@intrinsic
def add(typing_context: Any, a: Any, b: Any) -> tuple[Any, Callable[..., Any]]:
    """a + b."""
    return _LANES(_LANES, _LANES), lambda context, builder, signature, args: builder.fadd(*args)


@intrinsic
def add_product(typing_context: Any, total: Any, a: Any, array: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """total + a * array[at], one number for all lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = builder.load(_address(context, builder, signature.args[2], *args[2:]))
        first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        factor = builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), everywhere)
        return builder.fadd(args[0], builder.fmul(args[1], factor, flags=_FUSED), flags=_FUSED)

    return _LANES(_LANES, _LANES, array, types.intp), generate


@intrinsic
def where_positive(typing_context: Any, test: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """0 where test <= 0, else value: with test for value the ReLU, nan included; with a gradient, its derivative."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_unordered(">", args[0], _ZERO), args[1], _ZERO)

    return _LANES(_LANES, _LANES), generate
