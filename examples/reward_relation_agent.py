"""An agent brings an object into a relation: trained on the rule's margin, or on a learned model of relations.

``--reward runs/rel3d/relational:dense`` trains it on a network. The rules judge it in either case. With the defaults
it takes some seconds and learns a little; 54,000 steps are some minutes and bring seven relations about.
"""

import argparse

from reward_models.agents import relations

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="runs/reward_relation_agent", help="folder of the run; run again to resume")
parser.add_argument("--reward", default="dense", help="dense or sparse for the rules, FOLDER:dense for a network")
parser.add_argument("--predicate", nargs="+", default=["near", "to the left of (wrt you)"], help="what it learns")
parser.add_argument("--steps", type=int, default=4_000, help="environment steps")
parser.add_argument("--episodes", type=int, default=50, help="episodes of each predicate to judge it by")
options = parser.parse_args()

trained = relations.train(options.out, options.reward, options.predicate, steps=options.steps, progress=False)
found = relations.evaluate(trained, trained.config, trained.reward, episodes=options.episodes)
at_random = relations.evaluate("random", trained.config, trained.reward, episodes=options.episodes)
trained.close()

print(f"{options.steps:,} steps on {options.reward}; shares of {options.episodes} episodes")
print(f"{'':28}{'by the rule':>14}{'by reward':>14}{'at random':>14}")
for name, ends in found.items():
    print(f"{name:28}{ends.success_rate:14.2f}{ends.claimed_rate:14.2f}{at_random[name].success_rate:14.2f}")
