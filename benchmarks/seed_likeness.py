"""How alike the seeds are to the evaluation tasks, and to one another (docs/seeds.md).

python benchmarks/seed_likeness.py
"""

from itertools import combinations
from statistics import median

from sandmle.factory.seeds.catalogue import competitions
from sandmle.factory.seeds.nearness import MOST_ALIKE, alike, nearest_evaluation


def main() -> None:
    seeds = [one for one in competitions() if not one.evaluation_only]
    near = sorted(((*nearest_evaluation(one.dna)[::-1], one.id) for one in seeds), reverse=True)
    print(f"{len(seeds)} seeds, nearest evaluation task; the limit is {MOST_ALIKE}")
    for how, other, name in near[:3]:
        print(f"{how:.2f}  {name}, like {other}")
    print(f"{median(how for how, *_ in near):.2f}  median")
    pairs = sorted(
        ((alike(a.dna, b.dna).whole, a.id, b.id) for a, b in combinations(seeds, 2)), reverse=True
    )
    print("pairs of seeds, the most alike")
    for how, name, other in pairs[:3]:
        print(f"{how:.2f}  {name}, {other}")


if __name__ == "__main__":
    main()
