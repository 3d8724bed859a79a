from dataclasses import dataclass
@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    floor: float
    vocabulary: int
    used: float
    unknown: float
    repeated: float
