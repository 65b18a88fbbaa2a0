#!/usr/bin/env python3
"""How stable the answer of `fleetfoot compare` is: every scenario is compared with several disjoint sets of seeds.

For each file it prints how often the recommended setting is the usual one or one of its equals, how often the first tier is
the usual one up to one member, and how often the recommended setting still saves more time than it harms with twice the seeds.

    scripts/stability.py [--program PROGRAM] [--sets 20] [--seeds 10] [--only a,b,c] [--out FILE] SCENARIO...
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# Sets of seeds stand so far apart that the seeds which a comparison adds by itself belong to one set only.
DISTANCE = 1000


def compare(program, scenario, first, seeds, only, more=()):
    with tempfile.TemporaryDirectory(prefix="fleetfoot-stability-") as folder:
        command = [program, "compare", scenario, "--seed", str(first), "--seeds", str(seeds), "--quiet", "--json", *more]
        if only:
            command += ["--only", only]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{scenario}: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout)


def first_tier(result):
    recommended = result["recommended"]
    return frozenset([recommended["variant"], *recommended["equals"]]) if recommended else frozenset()


def net(result, name):
    versus = next(variant["versus"] for variant in result["variants"] if variant["name"] == name)
    harm = versus["harm"]["value"] if versus["harm"] else 0.0
    return versus["win"] - harm


def examine(program, scenario, sets, seeds, only):
    answers, losses = [], 0
    for number in range(sets):
        first = 1 + number * DISTANCE
        result = compare(program, scenario, first, seeds, only)
        tier = first_tier(result)
        name = result["recommended"]["variant"] if tier else None
        answers.append((name, tier))
        if name:
            doubled = compare(program, scenario, first, 2 * seeds, name, ["--budget", "0"])
            losses += net(doubled, name) <= 0
        print(f"  {first:6}: {name or 'nothing'}; equal: {', '.join(sorted(tier - {name})) or 'none'}", flush=True)
    usual = collections.Counter(name for name, _ in answers).most_common(1)[0][0]
    tiers = collections.Counter(tier for _, tier in answers)
    # The usual tier is the one that most others equal up to one member.
    near = {tier: sum(len(tier ^ other) <= 1 for _, other in answers) for tier in tiers}
    usual_tier = max(near, key=lambda tier: (near[tier], tiers[tier]))
    same = sum(name == usual or name in usual_tier or (usual in tier and name is not None) for name, tier in answers)
    return {
        "recommended": usual,
        "tier": sorted(usual_tier),
        "sets": sets,
        "same": same,
        "tier_same": near[usual_tier],
        "losses": losses,
        "answers": [{"recommended": name, "tier": sorted(tier)} for name, tier in answers],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="+")
    parser.add_argument("--program", default="target/release/fleetfoot")
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", help="mechanisms to compare; all unless given")
    parser.add_argument("--out", help="JSON file for the result of every set")
    options = parser.parse_args()
    program = str(Path(options.program).resolve())
    results = {}
    for scenario in options.scenarios:
        path = Path(scenario).resolve()
        print(path.name, flush=True)
        found = examine(program, str(path), options.sets, options.seeds, options.only)
        results[path.name] = found
        print(
            f"{path.name}: {found['recommended']} or an equal in {found['same']} of {found['sets']} sets; tier "
            f"{{{', '.join(found['tier'])}}} up to one member in {found['tier_same']}; with twice the seeds a loss in "
            f"{found['losses']}",
            flush=True,
        )
        if options.out:
            Path(options.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
