"""How the one tensor of a file is made, kept for the next file that has the same pickle.

A dump has thousands of files of one tensor of one shape. Their pickles are the same byte by byte,
and to follow one takes longer than all else of such a file: once is enough.
"""

from dataclasses import dataclass

from rl_insight.readers.torch_objects import Storage, TorchObjects
from rl_insight.readers.torch_tensors import Array, NumberKind

# A pickle of one tensor has some 150 bytes, and a dump a few shapes.
_LONGEST = 1_000
_MOST = 256


@dataclass(frozen=True, slots=True)
class TensorRecipe:
    """What the pickle of one tensor says: which numbers of which storage, by `TorchObjects`."""

    reference: object
    kind: NumberKind
    size: tuple[int, ...]
    stride: tuple[int, ...] | None
    offset: int

    def tensor(self, objects: TorchObjects) -> Array:
        """The tensor, of the storage that this file has. Raises ReadError as reading it does."""
        data = objects.stored(self.reference).data
        return objects.array(data, self.kind, self.size, self.stride, self.offset)


class RecordedObjects(TorchObjects):
    """The objects of one file, which note how its tensors are made."""

    _reference: object = None
    _data: memoryview | None = None
    _storages_read = 0
    _tensor: Array | None = None
    _tensors = 0
    recipe: TensorRecipe | None = None

    def stored(self, reference: object) -> Storage:
        """As in TorchObjects."""
        storage = super().stored(reference)
        self._reference, self._data = reference, storage.data
        self._storages_read += 1
        return storage

    def array(
        self,
        data: memoryview | bytes,
        kind: NumberKind,
        size: tuple[int, ...],
        stride: tuple[int, ...] | None = None,
        offset: int = 0,
        order: str | None = None,
    ) -> Array:
        """As in TorchObjects."""
        self._tensor = super().array(data, kind, size, stride, offset, order)
        self._tensors += 1
        if data is self._data and order is None:
            self.recipe = TensorRecipe(self._reference, kind, size, stride, offset)
        return self._tensor

    def made_only(self, value: object) -> bool:
        """Whether `value` is the one tensor, of the one storage, that was made."""
        return value is self._tensor and self._tensors == 1 and self._storages_read == 1


_RECIPES: dict[bytes, TensorRecipe] = {}


def tensor_recipe(pickle: bytes) -> TensorRecipe | None:
    """How the tensor of a file with this pickle is made, where that is known."""
    return _RECIPES.get(pickle)


def keep_recipe(pickle: bytes, objects: RecordedObjects, value: object) -> None:
    """Keep how `value` was made of `pickle`, if it is one tensor and nothing else."""
    recipe = objects.recipe
    if recipe is None or not objects.made_only(value):
        return
    if len(pickle) <= _LONGEST and len(_RECIPES) < _MOST:
        _RECIPES[pickle] = recipe
