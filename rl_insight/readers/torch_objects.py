"""The closed set of torch's names in a pickle: tensors, their storages, and what goes with them.

How tensors are written: `torch.Tensor.__reduce_ex__` and `torch._utils`; for Ascend's NPUs
`torch_npu.utils.storage`. A storage's device tag is ignored: where a tensor lived says nothing
about its numbers.
"""

from collections.abc import Callable

from rl_insight.errors import ReadError
from rl_insight.readers import numpy_objects
from rl_insight.readers.numpy_objects import (
    Arguments,
    Context,
    Function,
    Named,
    PendingArray,
    PendingDtype,
)
from rl_insight.readers.torch_pickle import NotKnownError
from rl_insight.readers.torch_tensors import KINDS, Array, Budget, NumberKind, array

# Of these, torch itself may know more than this reader does; of others, nobody should.
_TORCH_MODULES = (b"torch", b"torch_npu", b"numpy", b"collections")

_LONGEST_DEVICE = 64


class Storage:
    """The bytes of a storage and the kind of its numbers, where it has one."""

    __slots__ = ("data", "kind")

    def __init__(self, data: memoryview, kind: NumberKind | None) -> None:
        self.data = data
        self.kind = kind


class TorchObjects:
    """The objects of one file, whose storages `read` gives by key.

    `order` is the byte order of the file, `<` or `>`; `limit` what its arrays may take, in bytes.
    """

    def __init__(self, read: Callable[[str], memoryview], order: str, limit: int) -> None:
        self._read = read
        self._order = order
        self.budget = Budget(limit)
        """What arrays and bytes may still take."""
        self._storages: dict[str, memoryview] = {}
        self.kinds: set[str] = set()
        """The kinds of numbers of the tensors so far, by torch's names."""

    def named(self, name: bytes) -> object:
        """What `module\\nname` stands for. Raises ReadError for all outside of the closed set."""
        known = _NAMES.get(name)
        if known is not None:
            return known
        if name in _REFUSED:
            raise ReadError(f"it holds {_REFUSED[name]}, which is not read")
        shown = ascii(name.decode("utf-8", "replace").replace("\n", "."))[1:-1][:80]
        if name.partition(b"\n")[0].partition(b".")[0] in _TORCH_MODULES:
            raise NotKnownError(f"it needs {shown}, which is not read")
        raise ReadError(f"it would run {shown}: refused, nothing was executed")

    def called(self, function: object, arguments: Arguments) -> object:
        """What `function` gives."""
        if not isinstance(function, Function):
            raise TypeError
        return function.give(self, arguments)

    def set_state(self, target: object, state: object) -> None:
        """Give an array or a dtype its state; attributes of a dictionary are left out."""
        if isinstance(target, PendingArray | PendingDtype):
            target.set_state(self, state)
        elif not isinstance(target, dict):
            raise TypeError

    def stored(self, reference: object) -> Storage:
        """The storage of `("storage", kind, key, device, how many numbers)`."""
        if not isinstance(reference, tuple):
            raise TypeError
        what, kind, key, _, count = reference
        if not isinstance(what, str) or what != "storage" or not isinstance(key, str):
            raise TypeError
        if type(count) is not int or count < 0:
            raise TypeError
        if key not in self._storages:
            self._storages[key] = self._read(key)
        data = self._storages[key]
        number = kind if isinstance(kind, NumberKind) else None
        if number is None and kind is not _UNTYPED:
            raise TypeError
        size = count * (number.little.itemsize if number else 1)
        if size > len(data):
            raise ReadError(
                f"the data of a tensor is cut off: {len(data)} of {size} bytes are there"
            )
        return Storage(data[:size], number)

    def array(
        self,
        data: memoryview | bytes,
        kind: NumberKind,
        size: tuple[int, ...],
        stride: tuple[int, ...] | None = None,
        offset: int = 0,
        order: str | None = None,
    ) -> Array:
        """`torch_tensors.array` within the file's limits, in the file's byte order."""
        self.kinds.add(kind.name)
        return array(data, kind, self.budget, size, stride, offset, order or self._order)


def _tensor(context: Context, storage: object, kind: NumberKind | None, view: Arguments) -> Array:
    offset, size, stride = view
    if not isinstance(storage, Storage) or kind is None:
        raise TypeError
    if not isinstance(size, tuple) or not isinstance(stride, tuple):
        raise TypeError
    return context.array(storage.data, kind, size, stride, offset)


def _plain_sign(metadata: Arguments) -> None:
    # torch leaves the work of a change of sign to whoever looks at the numbers.
    for entry in metadata:
        if isinstance(entry, dict) and ("neg" in entry or "conj" in entry):
            raise ReadError(
                "it holds a tensor with its sign still to be changed, which is not read"
            )


def _rebuild_tensor(context: Context, arguments: Arguments) -> Array:
    # storage, offset, size, stride, requires_grad, hooks, metadata
    storage = arguments[0]
    _plain_sign(arguments[6:])
    kind = storage.kind if isinstance(storage, Storage) else None
    return _tensor(context, storage, kind, arguments[1:4])


def _rebuild_tensor_v3(context: Context, arguments: Arguments) -> Array:
    # The same over bytes without a kind, which comes after the hooks.
    dtype = arguments[6]
    _plain_sign(arguments[7:])
    if not isinstance(dtype, Named) or dtype not in KINDS:
        raise TypeError
    return _tensor(context, arguments[0], KINDS[dtype], arguments[1:4])


def _rebuild_npu_tensor(context: Context, arguments: Arguments) -> Array:
    # As version 2, then the memory layout that the tensor had on the device; its data has none.
    return _rebuild_tensor(context, arguments[:6])


def _first(context: Context, arguments: Arguments) -> object:
    return arguments[0]


def _with_attributes(context: Context, arguments: Arguments) -> object:
    # A tensor that somebody gave attributes: how to rebuild it, its class, its arguments.
    function, kind, inner = arguments[:3]
    if not isinstance(function, Function) or not isinstance(inner, tuple):
        raise TypeError
    if function not in _TENSORS or not isinstance(kind, Named) or kind not in _TENSOR_CLASSES:
        raise NotKnownError("it holds a tensor of a class of its own, which is not read")
    return function.give(context, inner)


def _device(context: Context, arguments: Arguments) -> str:
    kind, index = arguments if len(arguments) == 2 else (*arguments, None)
    if not isinstance(kind, str) or len(kind) > _LONGEST_DEVICE:
        raise TypeError
    return kind if type(index) is not int else f"{kind}:{index}"


def _size(context: Context, arguments: Arguments) -> Arguments:
    (size,) = arguments
    if not isinstance(size, tuple):
        raise TypeError
    return size


def _ordered(context: Context, arguments: Arguments) -> dict[object, object]:
    if arguments:
        raise TypeError
    return {}


_UNTYPED = Named("torch.UntypedStorage")
_TENSOR_CLASSES = [Named("torch.Tensor"), Named("torch.nn.Parameter")]
_TENSORS = [Function(_rebuild_tensor), Function(_rebuild_tensor_v3), Function(_rebuild_npu_tensor)]
_STORAGES = {
    "Bool": "bool",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Byte": "uint8",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Float": "float32",
    "Double": "float64",
}

_NAMES: dict[bytes, object] = {
    **numpy_objects.NAMES,
    **{f"torch\n{name}Storage".encode(): KINDS[kind] for name, kind in _STORAGES.items()},
    **{f"torch\n{kind}".encode(): Named(kind) for kind in KINDS},
    b"torch\nUntypedStorage": _UNTYPED,
    b"torch.storage\nUntypedStorage": _UNTYPED,
    b"torch._utils\n_rebuild_tensor": _TENSORS[0],
    b"torch._utils\n_rebuild_tensor_v2": _TENSORS[0],
    b"torch._utils\n_rebuild_tensor_v3": _TENSORS[1],
    b"torch_npu.utils.storage\n_rebuild_npu_tensor": _TENSORS[2],
    b"torch_npu.npu._format\nFormat": Function(_first),
    b"torch._tensor\n_rebuild_from_type_v2": Function(_with_attributes),
    b"torch._utils\n_rebuild_parameter": Function(_first),
    b"torch._utils\n_rebuild_parameter_with_state": Function(_first),
    b"torch._utils\n_rebuild_device_tensor_from_cpu_tensor": Function(_first),
    b"torch._utils\n_rebuild_device_tensor_from_numpy": Function(_first),
    b"torch\nTensor": _TENSOR_CLASSES[0],
    b"torch.nn.parameter\nParameter": _TENSOR_CLASSES[1],
    b"torch\nSize": Function(_size),
    b"torch\ndevice": Function(_device),
    b"torch.serialization\n_get_layout": Function(_first),
    b"collections\nOrderedDict": Function(_ordered),
}

_REFUSED: dict[bytes, str] = {
    b"torch._utils\n_rebuild_sparse_tensor": "a sparse tensor",
    b"torch._utils\n_rebuild_nested_tensor": "a nested tensor",
    b"torch._utils\n_rebuild_qtensor": "a quantised tensor",
    b"torch._utils\n_rebuild_meta_tensor_no_storage": "a meta tensor (without numbers)",
    b"torch._utils\n_rebuild_wrapper_subclass": "a tensor of a class of its own",
    **{
        f"torch\n{kind}".encode(): f"numbers of the kind {kind}"
        for kind in (
            *("complex32", "complex64", "complex128", "ComplexFloatStorage"),
            *("ComplexDoubleStorage", "QInt32Storage", "QInt8Storage", "QUInt8Storage"),
            *("QUInt2x4Storage", "QUInt4x2Storage", "float8_e4m3fn", "float8_e4m3fnuz"),
            *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
        )
    },
}
