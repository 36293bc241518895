"""Sixteen numbers as one value in numba's compiled code, the width of the networks' hidden layers.

Numba does not vectorise the loops over pairs of objects by itself; with a type for sixteen numbers and these operations
on it, LLVM keeps them in vector registers of whatever width the processor has. An array argument is contiguous, of
float32 or float64, which the sixteen are then too, and ``at`` is the place of the first number in it, counted as if it
were flat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, models, register_model

LANES = 16

_FUSED = ("contract",)  # a product and a sum may become one instruction


class _Lanes(types.Type):
    def __init__(self, dtype: types.Float) -> None:
        super().__init__(name=f"{dtype}x{LANES}")
        self.dtype = dtype


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _Lanes) -> None:
        super().__init__(manager, kind, ir.VectorType(manager[kind.dtype].get_value_type(), LANES))


def _zero(vector: ir.VectorType) -> ir.Constant:
    return ir.Constant(vector, [0.0] * LANES)


def _address(context: Any, builder: Any, kind: types.Array, array: Any, at: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


@intrinsic
def zeros(typing_context: Any, array: Any) -> tuple[Any, Callable[..., Any]]:
    """Sixteen zeros of an array's type."""
    kind = _Lanes(array.dtype)
    return kind(array), lambda context, builder, signature, args: _zero(context.get_value_type(kind))


@intrinsic
def load(typing_context: Any, array: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """array[at : at + 16]."""
    kind = _Lanes(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], *args)
        vector = context.get_value_type(kind)
        return builder.load(builder.bitcast(address, vector.as_pointer()), align=array.dtype.bitwidth // 8)

    return kind(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, at: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """array[at : at + 16] = value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], *args[:2])
        builder.store(args[2], builder.bitcast(address, args[2].type.as_pointer()), align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, _Lanes(array.dtype)), generate


@intrinsic
def add(typing_context: Any, a: Any, b: Any) -> tuple[Any, Callable[..., Any]]:
    """a + b."""
    return a(a, a), lambda context, builder, signature, args: builder.fadd(*args)


@intrinsic
def add_product(typing_context: Any, total: Any, a: Any, array: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """total + a * array[at], one number for all lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = builder.load(_address(context, builder, signature.args[2], *args[2:]))
        nothing = ir.Constant(args[1].type, ir.Undefined)
        first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        factor = builder.shuffle_vector(first, nothing, everywhere)
        return builder.fadd(args[0], builder.fmul(args[1], factor, flags=_FUSED), flags=_FUSED)

    return total(total, total, array, types.intp), generate


@intrinsic
def gate(typing_context: Any, test: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
    """0 where test <= 0, else value: with a gradient for value, what the ReLU of ``test`` lets through."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = _zero(args[0].type)
        return builder.select(builder.fcmp_unordered(">", args[0], zero), args[1], zero)

    return test(test, test), generate


@njit(cache=True, error_model="numpy")
def relu(x):  # type: ignore[no-untyped-def]
    """max(x, 0), nan included."""
    return gate(x, x)


@njit(cache=True, error_model="numpy")
def add_matrix(total, matrix, start, vector, at):  # type: ignore[no-untyped-def]
    """total plus the rows of a 16 x 16 matrix, each times its entry of the vector; two chains, so that they overlap."""
    other = zeros(matrix)
    for k in range(0, LANES, 2):
        total = add_product(total, load(matrix, start + k * LANES), vector, at + k)
        other = add_product(other, load(matrix, start + (k + 1) * LANES), vector, at + k + 1)
    return add(total, other)
