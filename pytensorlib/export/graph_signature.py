"""The signature of an exported graph: the roles of its inputs and outputs."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from typing import Any

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymIntArgument",
    "TensorArgument",
]


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size that is open, by the name of its node."""

    name: str


@dataclasses.dataclass
class ConstantArgument:
    """A plain value."""

    name: str
    value: Any


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class that a program registered; none can be exported here."""

    name: str
    class_fqn: str
    fake_val: Any = None


class InputKind(enum.Enum):
    """The role of an input."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """The role of an output."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


@dataclasses.dataclass
class InputSpec:
    """An input: what it is, its node, and the name of what it holds."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        name = getattr(self.arg, "name", "")
        said = f"{name}: {self.kind.name}"
        if self.target is not None:
            said += f" target={self.target!r}"
        return said if self.persistent is None else f"{said} persistent={self.persistent}"


@dataclasses.dataclass
class OutputSpec:
    """An output: what it is, its node, and the name of what it changes."""

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        said = f"{getattr(self.arg, 'name', '')}: {self.kind.name}"
        return said if self.target is None else f"{said} target={self.target!r}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs are gradients; programs are exported without them here."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """What the inputs and outputs of an exported graph are, in order.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> signature = torch.export.export(torch.nn.ReLU(), (torch.ones(2),)).graph_signature
    >>> signature.user_inputs, signature.user_outputs
    (('input',), ('relu',))
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, *kinds: InputKind) -> Iterator[InputSpec]:
        return (s for s in self.input_specs if s.kind in kinds)

    def _outputs(self, *kinds: OutputKind) -> Iterator[OutputSpec]:
        return (s for s in self.output_specs if s.kind in kinds)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(str(s.target) for s in self._inputs(InputKind.PARAMETER))

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers."""
        return tuple(str(s.target) for s in self._inputs(InputKind.BUFFER))

    @property
    def non_persistent_buffers(self) -> set[str]:
        """The names of the buffers that are no part of the state."""
        return {str(s.target) for s in self._inputs(InputKind.BUFFER) if s.persistent is False}

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of tensors that are neither."""
        return tuple(str(s.target) for s in self._inputs(InputKind.CONSTANT_TENSOR))

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """Nothing: such objects cannot be exported."""
        return ()

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The arguments: names of nodes, or plain values."""
        return tuple(_shown(s.arg) for s in self._inputs(InputKind.USER_INPUT))

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The outputs of the user's program: names of nodes, or plain values."""
        return tuple(_shown(s.arg) for s in self._outputs(OutputKind.USER_OUTPUT))

    def _named(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: str(s.target) for s in self._inputs(kind)}

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """The parameters by the names of their nodes."""
        return self._named(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """The buffers by the names of their nodes."""
        return self._named(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """The constants by the names of their nodes."""
        return self._named(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """The buffers that outputs are the new values of."""
        found = self._outputs(OutputKind.BUFFER_MUTATION)
        return {s.arg.name: str(s.target) for s in found}

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """The arguments that outputs are the new values of."""
        found = self._outputs(OutputKind.USER_INPUT_MUTATION)
        return {s.arg.name: str(s.target) for s in found}

    @property
    def backward_signature(self) -> None:
        """None: programs are exported without gradients."""
        return None

    def replace_all_uses(self, old: str, new: str) -> None:
        """Use another name for a node.

        Parameters
        ----------
        old, new : str
            The names.
        """
        spec: Any
        for spec in (*self.input_specs, *self.output_specs):
            if getattr(spec.arg, "name", None) == old:
                spec.arg.name = new

    def __str__(self) -> str:
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _shown(arg: Any) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name
