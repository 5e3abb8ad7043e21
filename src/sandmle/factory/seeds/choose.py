"""Seeds by what somebody names: the whole catalogue, competitions of it, a file, a folder."""

from pathlib import Path

from sandmle.errors import UsageError
from sandmle.factory.mix import Seed, read_seeds
from sandmle.factory.seeds.catalogue import as_seed, catalogue, competitions
from sandmle.factory.seeds.profile import Roles, profile
from sandmle.factory.seeds.words import content_words
from sandmle.files import to_json, write_atomic
from sandmle.tasks.cells import Invalid
from sandmle.tasks.submission import read_table

ALL = "mle-bench"
_DESCRIPTIONS = ("description.md", "overview.md", "README.md")
_BELOW = ("", "public", "prepared/public")


def choose_seeds(wanted: str, force: bool = False) -> tuple[Seed, ...]:
    """Return the seeds that are named: `mle-bench`, ids of it with commas, or a JSON file."""
    if wanted == ALL:
        return tuple(one.seed for one in catalogue())
    path, names = Path(wanted), [name.strip() for name in wanted.split(",")]
    known = {one.id for one in competitions()}
    if path.suffix == ".json" or path.is_file() or not known & set(names):
        return read_seeds(path)
    return tuple(as_seed(name, force).seed for name in names if name)


def words_of(seed: Seed) -> frozenset[str]:
    """Return the words that must not come back in what is made from a seed."""
    found = next((one for one in competitions() if one.id == seed.name), None)
    return found.words if found is not None else content_words([seed.name])


def seed_of_folder(folder: Path, target: str | None, force: bool = False) -> Seed:
    """Return the seed that a competition's folder is.

    A folder that is named like a competition of the catalogue is that one. Any other needs a
    description and a train table; the target is that of its sample submission unless it is named.
    Raises `UsageError`.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    name = folder.resolve().name
    if name in {one.id for one in competitions()}:
        return as_seed(name, force).seed
    places = [folder / below for below in _BELOW]
    if not any((place / text).is_file() for place in places for text in _DESCRIPTIONS):
        raise UsageError(
            f"{folder}: has no description ({', '.join(_DESCRIPTIONS)}), and {name!r} is no "
            "competition of the catalogue"
        )
    tables = [p / f"train{end}" for p in places for end in (".csv", ".parquet")]
    table = next((path for path in tables if path.is_file()), None)
    if table is None:
        raise UsageError(f"{folder}: has no train.csv; `seeds from-data FILE` takes any table")
    id_column, found = _sample_columns(table.parent)
    if target is None and len(found) != 1:
        raise UsageError(f"{folder}: which column is the target is not clear; name it by --target")
    return Seed(name=name, dna=profile(table, Roles(target or found[0], id_column)))


def add_seed(seed: Seed, path: Path) -> int:
    """Append a seed to a file of seeds, made if need be; returns how many are in it then."""
    before = read_seeds(path) if path.exists() else ()
    if seed.name in {one.name for one in before}:
        raise UsageError(f"{path}: has a seed {seed.name!r} already")
    seeds = [one.model_dump(mode="json") for one in (*before, seed)]
    write_atomic(path, to_json({"seeds": seeds}, indent=2) + "\n")
    return len(seeds)


def _sample_columns(folder: Path) -> tuple[str | None, list[str]]:
    """Return the id column of the sample submission and its other columns."""
    for path in sorted(folder.glob("sample*ubmission*.csv")):
        try:
            header = read_table(path.read_bytes()).header
        except (OSError, Invalid) as error:
            raise UsageError(f"{path}: {error}") from None
        return header[0], header[1:]
    return None, []
