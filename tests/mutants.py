"""Seeded faults, each of which the suite must catch.

    python tests/mutants.py            # apply each fault to a copy of the source, run its test
    python tests/mutants.py 1/3        # a third of them, evenly drawn: every third from the second
    python tests/mutants.py --write    # write tests/mutants.md

A fault that its test does not notice makes this fail, and so does a fault that no longer applies.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """A fault: replace `old` by `new` in a module; `test` is what must fail then."""

    fault: str
    module: str
    old: str
    new: str
    test: str
    needs_torch: bool = False


SUBMISSION = "tasks/submission.py"
CELLS = "tasks/cells.py"
GRADER = "grading/grader.py"
MALFORMED = "grading/test_malformed.py::test_malformed"
LAWS = "conformance/test_metrics.py::test_laws"
REPORTS = "grading/test_field_reports.py"
TABLES = "test_rewards.py::test_tables"
COLLECT = "train/test_collect.py"
GRPO = "train/test_grpo.py"
ATTACK = "redteam/test_redteam.py::test_attack"
CONFINED = "sandbox/test_confined.py"
INSIDE = "sandbox/test_inside.py"
GATE, AUDIT, BUILD = "factory/gate.py", "factory/audit.py", "factory/build.py"
PROBES = "factory/probes.py"
AUDITED = "factory/test_audit.py"
FAMILIES = "conformance/test_families.py"

MUTANTS = [
    # --- schema and submission
    Mutant(
        "rows are matched by position, not by id",
        SUBMISSION,
        "order = [position[name] for name in ids]",
        "order = list(range(len(ids)))",
        f"{REPORTS}::test_fr08_row_order_means_nothing_and_ids_everything",
    ),
    Mutant(
        "repeated ids are let through",
        SUBMISSION,
        "repeated = [name for name, count in counts.items() if count > 1]\n    facts",
        "repeated = []\n    facts",
        f"{REPORTS}::test_fr06_repeated_ids_do_not_raise_the_score",
    ),
    Mutant(
        "unknown ids are let through",
        SUBMISSION,
        "extra = [name for name in counts if name not in expected]",
        "extra = []",
        MALFORMED,
    ),
    Mutant(
        "numbers are whatever float() takes",
        CELLS,
        "return float(cell) if _NUMBER.fullmatch(cell) else math.nan",
        "return float(cell) if cell else math.nan",
        MALFORMED,
    ),
    Mutant(
        "not-a-number passes as a number",
        SUBMISSION,
        "_refuse(np.isnan(values), cells, column, ids, lines",
        "_refuse(np.zeros(len(values), bool), cells, column, ids, lines",
        f"{REPORTS}::test_fr09_nan_predictions_are_invalid",
    ),
    Mutant(
        "the range is not checked",
        SUBMISSION,
        "outside = (values < low - RANGE_SLACK) | (values > high + RANGE_SLACK)",
        "outside = values != values",
        MALFORMED,
    ),
    Mutant(
        "probabilities need not add up",
        SUBMISSION,
        "ROW_SUM_TOLERANCE = 1e-3 + 1e-9",
        "ROW_SUM_TOLERANCE = 1e3",
        MALFORMED,
    ),
    Mutant(
        "labels match in any case",
        SUBMISSION,
        "    return known.get\n",
        "    return lambda cell: {c.lower(): c for c in choices}.get(cell.lower())\n",
        MALFORMED,
    ),
    Mutant(
        "a byte-order mark becomes part of the first name",
        SUBMISSION,
        'encoding="utf-8-sig", newline=""',
        'encoding="utf-8", newline=""',
        f"{REPORTS}::test_fr04_a_byte_order_mark_is_no_part_of_a_name",
    ),
    Mutant(
        "rows of another length are let through",
        SUBMISSION,
        "if len(row) != width:",
        "if len(row) < width:",
        f"{REPORTS}::test_fr05_a_trailing_comma_does_not_shift_columns",
    ),
    Mutant(
        "columns that were not asked for are let through",
        SUBMISSION,
        "extra = [name for name in header if name not in expected]",
        "extra = []",
        MALFORMED,
    ),
    Mutant(
        "hard links are read",
        "files.py",
        "if only_name and named.st_nlink != 1:",
        "if only_name and named.st_nlink < 1:",
        "test_files.py::test_what_is_not_a_plain_file_is_refused",
    ),
    Mutant(
        "links are followed",
        "files.py",
        "os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK",
        "os.O_RDONLY | os.O_NONBLOCK",
        "test_files.py::test_what_is_not_a_plain_file_is_refused",
    ),
    # --- factory
    Mutant(
        "the floor does not look at constants",
        GATE,
        "    return {**trial.blind, **dummies}",
        "    return dummies",
        "factory/test_gate.py::test_constants_count_for_the_floor",
    ),
    Mutant(
        "gold is the lower of its two bounds",
        GATE,
        "    gold = max(floor + 0.8",
        "    gold = min(floor + 0.8",
        "factory/test_gate.py::test_a_sound_task_passes_with_the_thresholds_of_the_formula",
    ),
    Mutant(
        "a mutation need not bite",
        GATE,
        "MIN_BITE_SE = 2.0",
        "MIN_BITE_SE = -1e9",
        "factory/test_gate.py::test_a_mutation_must_bite",
    ),
    Mutant(
        "the paper's silver is its linear model",
        GATE,
        'for name in ("dummy", "linear", "forest")',
        'for name in ("dummy", "forest", "linear")',
        "factory/test_gate.py::test_the_papers_thresholds_are_its_baselines",
    ),
    Mutant(
        "hashes of ids are not looked at",
        PROBES,
        "lengths, letters, bits]",
        "lengths, letters]",
        f"{AUDITED}::test_a_planted_leak_is_found",
    ),
    Mutant(
        "the audit knows planned columns only",
        PROBES,
        "[name for name in table.header if name not in (id_column, *targets)]",
        "list(kinds)",
        f"{AUDITED}::test_a_planted_leak_is_found",
    ),
    Mutant(
        "rows that train and test share are let through",
        AUDIT,
        "sum(row in seen for row in test)",
        "0",
        f"{AUDITED}::test_rows_of_train_in_test_are_found",
    ),
    Mutant(
        "answers are as noisy as training labels",
        BUILD,
        "sort.answers(story.target, form, test.clean)",
        "sort.answers(story.target, form, test.observed)",
        f"{FAMILIES}::test_answers_follow_the_rule_and_training_labels_are_noisy[interaction]",
    ),
    Mutant(
        "the pool is the shipped test",
        "factory/trial.py",
        "draw(recipe, (FRESH, _POOL, *seed), 1, n",
        "draw(recipe, seed, 1, n",
        f"{FAMILIES}::test_the_pool_shares_nothing_with_what_is_shipped[interaction]",
    ),
    Mutant(
        "groups of train come again in test",
        BUILD,
        "numbers[2 * i + (split == 'test')]",
        "numbers[2 * i]",
        f"{FAMILIES}::test_train_and_test_share_no_row_no_id_and_no_group[group_relative]",
    ),
    Mutant(
        "a query that is drawn twice counts as one",
        "factory/trial.py",
        "return np.concatenate(drawn), names.astype(str)",
        "return np.concatenate(drawn), None",
        "factory/test_gate.py::test_whole_queries_are_drawn_and_each_counts",
    ),
    Mutant(
        "corners of pictures are not looked at",
        PROBES,
        'for name in view.of_kind(("image", "frames")):\n        pixels',
        "for name in ():\n        pixels",
        f"{AUDITED}::test_what_is_planted_into_files_is_found[image_regions]",
    ),
    Mutant(
        "comments in pictures are not looked at",
        PROBES,
        "            other.append(name + body)\n        at += 12",
        "            pass\n        at += 12",
        f"{AUDITED}::test_what_is_planted_into_files_is_found[image_regions]",
    ),
    Mutant(
        "pictures are compressed, so that their size tells what is in them",
        "factory/assets.py",
        'b"\\x78\\x01" + stored + struct.pack(">I", zlib.adler32(raw))',
        "zlib.compress(raw)",
        "factory/test_assets.py::test_every_picture_of_a_shape_has_the_same_size",
    ),
    Mutant(
        "boxes read at once may have no width",
        CELLS,
        "and (boxes[:, 3:] > 0).all()",
        "",
        "tasks/test_submission.py::test_boxes_are_read_at_once_as_one_by_one",
    ),
    Mutant(
        "masks are counted along the rows",
        CELLS,
        'ravel(order="F")',
        "ravel()",
        "tasks/test_submission.py::test_a_mask_survives_being_written",
    ),
    Mutant(
        "dice is half of what it is",
        "metrics/segmentation.py",
        "mean_ratio(2 * shared, first + second)",
        "mean_ratio(shared, first + second)",
        "metrics/test_parity.py::test_hand_worked",
    ),
    Mutant(
        "one true box is found by many",
        "metrics/detection.py",
        "hit[i] = taken[j] = True",
        "hit[i] = True",
        "metrics/test_parity.py::test_each_true_box_is_found_once_and_by_the_surest",
    ),
    Mutant(
        "the mix has no domains",
        "factory/mix.py",
        "if weight > 0]\n    if not names:",
        "if weight > 1e9]\n    if not names:",
        "factory/test_mix.py::test_the_papers_proportions_are_kept",
    ),
    Mutant(
        "test labels are spoiled as well",
        "factory/modalities/tabular/label_mutations.py",
        'if split == "train":\n            draft.observed[rows]',
        "if split:\n            draft.observed[rows]",
        "factory/test_mutations.py::test_labels_are_wrong_in_train_only",
    ),
    Mutant(
        "the first of two entries is kept",
        "factory/modalities/tabular/label_mutations.py",
        'keep="last"',
        'keep="first"',
        "factory/test_mutations.py::test_the_last_of_two_entries_is_right",
    ),
    Mutant(
        "seed, slot and attempt are added up",
        "factory/plan.py",
        "np.random.default_rng([*where, _PARAMETERS])",
        "np.random.default_rng(sum(where))",
        "factory/test_pipeline.py::test_neighbouring_seeds_share_nothing",
    ),
    Mutant(
        "levels do not take turns",
        "factory/mix.py",
        "levels[(nth + family) % len(levels)]",
        "levels[family % len(levels)]",
        "conformance/test_families.py::test_metrics_and_levels_take_turns",
    ),
    Mutant(
        "near-duplicates are split between train and val",
        "tasks/corpus.py",
        "groups[clusters.get(name, name)]",
        "groups[name]",
        "tasks/test_corpus.py::test_clusters_stay_on_one_side",
    ),
    # --- grading and metrics
    Mutant(
        "milestones are exclusive",
        GRADER,
        'value >= threshold if direction == "max"',
        'value > threshold if direction == "max"',
        "test_rewards.py::test_milestones_are_inclusive_and_unrounded",
    ),
    Mutant(
        "the direction is flipped",
        GRADER,
        'value >= threshold if direction == "max" else value <= threshold',
        'value <= threshold if direction == "max" else value >= threshold',
        TABLES,
    ),
    Mutant(
        "scores are rounded before they are compared",
        "metrics/registry.py",
        "    return float(value)\n",
        "    return round(float(value), 5)\n",
        "grading/test_grader.py::test_the_score_is_not_rounded",
    ),
    Mutant(
        "a NaN score is a score",
        "metrics/registry.py",
        "if not math.isfinite(value):",
        "if math.isinf(value):",
        f"{REPORTS}::test_fr09_a_metric_without_a_value_is_our_failure",
    ),
    Mutant(
        "our failure is the agent's invalid submission",
        GRADER,
        'return Grade(status="grader_error"',
        'return Grade(status="invalid"',
        f"{REPORTS}::test_fr10_auc_of_a_single_class_is_our_failure",
    ),
    Mutant(
        "the wrong direction of a metric is believed",
        "metrics/regression.py",
        '"mae",\n    NUMBER,\n    "min"',
        '"mae",\n    NUMBER,\n    "max"',
        f"{LAWS}[mae]",
    ),
    Mutant(
        "macro F1 weighs classes by their size",
        "metrics/classification.py",
        'require_classes(y_true, classes)\n    options = {"labels": list(classes), '
        '"average": "macro", "zero_division": 0}\n    return float(f1_score',
        'require_classes(y_true, classes)\n    options = {"labels": list(classes), '
        '"average": "weighted", "zero_division": 0}\n    return float(f1_score',
        "metrics/test_parity.py::test_parity",
    ),
    Mutant(
        "kappa is weighted linearly",
        "metrics/classification.py",
        'weights="quadratic"',
        'weights="linear"',
        "metrics/test_parity.py::test_parity",
    ),
    Mutant(
        "tied scores keep the order of the file in NDCG",
        "metrics/ranking.py",
        "(query[1:] != query[:-1]) | (score[1:] != score[:-1])",
        "query[:-1] >= 0",
        "metrics/test_parity.py::test_parity",
    ),
    Mutant(
        "MAP divides by k whatever there is to find",
        "metrics/ranking.py",
        "total += precision / min(k, len(wanted))",
        "total += precision / k",
        f"{LAWS}[map]",
    ),
    Mutant(
        "tied probabilities count for the top k",
        "metrics/probabilities.py",
        "np.sum(y_pred >= own, axis=1) <= k",
        "np.sum(y_pred > own, axis=1) < k",
        "metrics/test_hand_worked.py::test_hand_worked",
    ),
    Mutant(
        "a box of a class finds the boxes of all classes",
        "metrics/detection.py",
        "np.flatnonzero(kind == c)\n        for found",
        "np.arange(len(boxes))\n        for found",
        "metrics/test_parity.py::test_parity[coco_map]",
    ),
    Mutant(
        "a box that VOC gives no second choice has one",
        "metrics/detection.py",
        "(box[first], mate[first], overlaps[first])",
        "(box, mate, overlaps)",
        "metrics/test_parity.py::test_parity[voc_map]",
    ),
    Mutant(
        "rows that do not count are scored",
        "metrics/kinds.py",
        "return y_true[scored], y_pred[scored]",
        "return y_true, y_pred",
        "metrics/test_hand_worked.py::test_rows_that_do_not_count_may_be_anything",
    ),
    Mutant(
        "edit distances end where the longest text of a chunk does",
        "metrics/text.py",
        "result[done] = line[done, width[done]]",
        "result = line[np.arange(n), width]",
        "metrics/test_hand_worked.py::test_edit_distances_of_any_length_are_rapidfuzzs",
    ),
    Mutant(
        "labels that an order lacks are in their right place",
        "metrics/ranking.py",
        "*sorted(absent, reverse=True)",
        "*sorted(absent)",
        "metrics/test_parity.py::test_parity[order_tau]",
    ),
    # --- rewards
    Mutant(
        "milestones do not add up",
        "rewards.py",
        'if rule.mode == "exclusive":',
        'if rule.mode != "continuous":',
        TABLES,
    ),
    Mutant(
        "exclusive milestones add up",
        "rewards.py",
        'if rule.mode == "exclusive":',
        "if False:",
        TABLES,
    ),
    Mutant(
        "an invalid submission is paid for executing",
        "rewards.py",
        'parts["format"] = format_share',
        'parts["format"], parts["execute"] = format_share, 1.0',
        "test_rewards.py::test_without_a_valid_submission_only_the_form_pays",
    ),
    Mutant(
        "what could not be scored is worth nothing instead of unknown",
        "rewards.py",
        'if grade.status == "grader_error":\n        return None',
        'if grade.status == "never":\n        return None',
        "test_rewards.py::test_what_could_not_be_scored_has_no_reward",
    ),
    Mutant(
        "one good reply pays for the form of all",
        "rewards.py",
        'parts["format"] = format_share',
        'parts["format"] = float(format_share > 0)',
        "test_rewards.py::test_parts_are_itemised",
    ),
    Mutant(
        "an empty thought pays",
        "env/protocol.py",
        "begun and bool(think.strip())",
        "begun",
        "env/test_protocol.py::test_what_pays_for_its_form",
    ),
    # --- conversations
    Mutant(
        "the program that left a valid submission is forgotten",
        "env/context.py",
        "{exchanges[-1].turn, *valid[-1:]}",
        "{exchanges[-1].turn}",
        "env/test_context.py::test_failed_ones_go_first_then_the_oldest",
    ),
    Mutant(
        "replies of an earlier segment are trained again",
        "rollout/conversations.py",
        "if turn.index >= first:",
        "if turn.index >= 0:",
        "export/test_messages.py::test_segments_are_what_the_policy_saw",
    ),
    Mutant(
        "where lower is better an improvement is a reversion",
        "rollout/summary.py",
        'sign = 1 if directions[t.task_id] == "max" else -1',
        "sign = 1",
        "rollout/test_summary.py::test_who_ends_worse_than_before_has_reverted",
    ),
    Mutant(
        "weights may sum to anything",
        "types.py",
        "if abs(total - 1) > 1e-9:",
        "if total > 10:",
        "test_rewards.py::test_impossible_weights_are_refused",
    ),
    # --- sandbox
    Mutant(
        "a program keeps the machine's network",
        "sandbox/inside/init.py",
        "(0 if network else linux.NEWNET)",
        "0",
        f"{ATTACK}[tcp-to-the-harness]",
    ),
    Mutant(
        "network is given or taken once and for all",
        "sandbox/inside/worker.py",
        'self._standby.network != request["network"]',
        "False",
        f"{INSIDE}::test_with_network_the_hosts_loopback_is_reached",
    ),
    Mutant(
        "the kernel's command line is shown",
        "sandbox/inside/rootfs.py",
        'MASKED = ("cmdline", ',
        "MASKED = (",
        f"{ATTACK}[kernel-command-line]",
    ),
    Mutant(
        "no system call is refused",
        "sandbox/inside/program.py",
        'return seccomp.install(*config["filters"][request["network"]])',
        "pass",
        f"{ATTACK}[no-filter]",
    ),
    Mutant(
        "paths are not restricted",
        "sandbox/inside/program.py",
        "    rules.enforce()\n",
        "",
        f"{ATTACK}[own-process-files]",
    ),
    Mutant(
        "descriptors are inherited",
        "sandbox/inside/program.py",
        "    close_others(wire.fileno(), rules.fileno())\n",
        "",
        f"{ATTACK}[inherited-descriptors]",
    ),
    Mutant(
        "a call that leads out seems to succeed",
        "sandbox/inside/refusals.py",
        "-errno.EPERM",
        "0",
        "env/test_flags.py::test_system_calls_that_lead_out_are_named",
    ),
    Mutant(
        "the listener forgets what it refused",
        "sandbox/inside/refusals.py",
        "self.names.add(seccomp.name_of(number))",
        "seccomp.name_of(number)",
        "env/test_flags.py::test_system_calls_that_lead_out_are_named",
    ),
    Mutant(
        "processes are not limited",
        "sandbox/inside/program.py",
        '        (resource.RLIMIT_NPROC, request["processes"]),\n',
        "",
        f"{ATTACK}[many-processes]",
    ),
    Mutant(
        "memory is not added up",
        "sandbox/inside/init.py",
        "if used > limit and not full:",
        "if False:",
        f"{INSIDE}::test_memory_of_all_processes_is_added_up",
    ),
    Mutant(
        "a workspace has room for any number of bytes",
        "sandbox/inside/keeper.py",
        'linux.tmpfs(root, request["bytes"], request["inodes"], 0o711)',
        'linux.tmpfs(root, 10**10, request["inodes"], 0o711)',
        f"{ATTACK}[disk-fill]",
    ),
    Mutant(
        "the worker forgets the time",
        "sandbox/inside/worker.py",
        "if time.monotonic() >= deadline:",
        "if False:",
        "sandbox/test_sandboxes.py::test_the_clock_is_ours",
    ),
    Mutant(
        "every program draws the same random numbers",
        "sandbox/inside/interpreter.py",
        '        sys.modules["numpy.random"].seed()',
        "        pass",
        f"{CONFINED}::test_random_numbers_differ_between_runs_and_follow_a_seed",
    ),
    Mutant(
        "a keeper with threads forks",
        "sandbox/inside/keeper.py",
        "if processes.threads() > 1:",
        "if False:",
        f"{CONFINED}::test_a_module_that_starts_a_thread_is_left_out",
    ),
    Mutant(
        "a keeper that died is not replaced",
        "sandbox/confined.py",
        "if not self._keeper.alive:",
        "if False:",
        f"{CONFINED}::test_a_keeper_that_died_is_replaced_and_its_workspaces_are_lost",
    ),
    Mutant(
        "a missing promise does not stop the start",
        "sandbox/base.py",
        "    if missing:",
        "    if False:",
        f"{CONFINED}::test_a_guarantee_that_is_missing_stops_the_start",
    ),
    Mutant(
        "a lost worker counts as the program's failure",
        "sandbox/confined.py",
        'ExecResult(status="infra", stderr=str(error))',
        'ExecResult(status="killed", stderr=str(error))',
        f"{CONFINED}::test_a_worker_that_dies_under_a_program_is_our_failure",
    ),
    Mutant(
        "two programs run in one workspace at once",
        "sandbox/confined.py",
        "        with self._running:\n            if self._closed:",
        "        with suppress():\n            if self._closed:",
        f"{CONFINED}::test_two_programs_in_one_workspace_follow_each_other",
    ),
    # --- models behind a server
    Mutant(
        "what a server refuses is asked again",
        "llm/openai.py",
        "not answer.again or tries",
        "tries",
        "llm/test_openai.py::test_what_will_not_pass_is_asked_once",
    ),
    Mutant(
        "a server that repeats the key has it written down",
        "llm/openai.py",
        'what.replace(self._key, "***") if self._key else what',
        "what",
        "llm/test_openai.py::test_what_will_not_pass_is_asked_once",
    ),
    Mutant(
        "a reply without usage costs nothing",
        "llm/budget.py",
        "math.ceil(characters / _CHARACTERS)",
        "0",
        "llm/test_openai.py::test_a_cap_in_tokens_counts_letters_where_the_server_counts_nothing",
    ),
    Mutant(
        "half a reply is a reply",
        "llm/openai.py",
        "found or _Fault(",
        "found or Completion(",
        "llm/test_openai.py::test_what_may_pass_is_asked_again",
    ),
    Mutant(
        "the seed is no part of what was recorded",
        "llm/replay.py",
        '            "seed": seed,\n',
        "",
        "llm/test_replay.py::test_another_request_has_another_key",
    ),
    Mutant(
        "equal requests of a session share a reply",
        "llm/replay.py",
        "self._sent[same] + 1",
        "self._sent[same]",
        "llm/test_replay.py::test_what_was_said_is_said_again",
    ),
    Mutant(
        "seconds are part of what was recorded",
        "env/protocol.py",
        'return _SECONDS.sub(r"\\1", observation)',
        "return observation",
        "env/test_protocol.py::test_observations_of_equal_runs_differ_in_seconds_only",
    ),
    # --- masks
    Mutant(
        "observations are trained",
        "env/tokens.py",
        "self._append(ids, 0, [None] * len(ids))",
        "self._append(ids, 1, [None] * len(ids))",
        "env/test_tokens.py::test_fr39_three_turns_by_hand",
    ),
    Mutant(
        "a cut leaves the mask longer than the ids",
        "env/tokens.py",
        "        del self.mask[length:]\n",
        "",
        "env/test_tokens.py::test_fr40_lists_have_one_length_and_the_mask_counts_what_was_sampled",
    ),
    Mutant(
        "a timeout is trained on",
        "rollout/record.py",
        'result.status == "timeout"',
        'result.status == "oom"',
        "rollout/test_runner.py::test_a_timeout_masks_the_trajectory_and_keeps_its_grade",
    ),
    Mutant(
        "a failed model is a bad trajectory",
        "outcome.py",
        '("model_error", "infra_error", "grader_error")',
        '("infra_error", "grader_error")',
        "rollout/test_runner.py::test_a_failure_is_recorded_and_its_siblings_go_on",
    ),
    Mutant(
        "failures leave the denominator",
        "rollout/summary.py",
        '"rates": _rates(trajectories)',
        '"rates": _rates(scored)',
        "rollout/test_summary.py::test_failures_of_ours_stay_in_the_denominator",
    ),
    Mutant(
        "the mask is off by one",
        "train/grpo.py",
        "[0] * len(ledger.mask) if hide else ledger.mask",
        "[0] * len(ledger.mask) if hide else [0, *ledger.mask[:-1]]",
        f"{GRPO}::test_fr46_the_mask_of_the_trainer_is_the_ledgers",
        needs_torch=True,
    ),
    Mutant(
        "a masked trajectory keeps its tokens in the loss",
        "train/grpo.py",
        "[0] * len(ledger.mask) if hide else ledger.mask",
        "ledger.mask",
        f"{GRPO}::test_fr48_a_masked_trajectory_has_no_gradient_at_all",
        needs_torch=True,
    ),
    Mutant(
        "a masked trajectory stays in its group's baseline",
        "train/figures.py",
        "if trajectory.mask.masked or trajectory.reward is None:",
        "if trajectory.reward is None:",
        f"{GRPO}::test_fr47_advantages_are_those_of_each_task_alone_worked_by_hand",
        needs_torch=True,
    ),
    Mutant(
        "a step without anything to learn moves the weights on",
        "train/trainer.py",
        "parameter.grad = None",
        "pass",
        f"{GRPO}::test_fr45_a_step_without_anything_to_learn_makes_no_update",
        needs_torch=True,
    ),
    Mutant(
        "a task that is drawn twice in a step makes one group",
        "train/collect.py",
        "{self.step:06d}-{self.place:03d}-{self.task.id}",
        "{self.step:06d}-{self.task.id}",
        f"{COLLECT}::test_a_task_drawn_twice_in_one_step_makes_two_groups",
        needs_torch=True,
    ),
    Mutant(
        "the end of a turn is not trained",
        "train/decode.py",
        "Sampled(row.ids, ended, row.logprobs)",
        "Sampled(row.ids[: len(row.ids) - ended], ended, None)",
        "train/test_decode.py::test_a_batch_samples_what_each_context_would_alone",
        needs_torch=True,
    ),
    Mutant(
        "a step is drawn by what it will come to",
        "train/aim.py",
        "range(step - WINDOW, step)",
        "range(step - WINDOW, step + 1)",
        "train/test_aim.py::test_weights_worked_by_hand",
        needs_torch=True,
    ),
    Mutant(
        "an hour of unknown price costs nothing",
        "report/costs.py",
        "if hours is None or (hours and price is None):",
        "if hours is None:",
        "report/test_costs.py::test_what_is_not_known_is_never_zero",
    ),
    Mutant(
        "a history that the template rewrites is accepted",
        "train/codec.py",
        "if self._head(_DIALOGUE) != self._between",
        "if not self._head(_DIALOGUE) and self._between",
        "train/test_codec.py::test_fr37_a_template_that_rewrites_history_is_refused",
        needs_torch=True,
    ),
]


def survives(mutant: Mutant) -> str | None:
    """Return why a mutant is not caught, or None if its test fails as it should."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)  # with what is compiled of all other modules
        path = source / "sandmle" / mutant.module
        text = path.read_text()
        if text.count(mutant.old) != 1:
            return f"its place was found {text.count(mutant.old)} times in {mutant.module}"
        path.write_text(text.replace(mutant.old, mutant.new))
        options = ["-xq", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
        options += ["--hypothesis-profile", "unshrunk"]
        result = subprocess.run(
            [sys.executable, "-m", "pytest", *options, str(ROOT / "tests" / mutant.test)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    # its summary, or its first failure where it did not come so far
    if result.returncode == 1 and re.search(
        r"^FAILED tests/|^[.sx]*F$", result.stdout, re.MULTILINE
    ):
        return None
    said = f"{result.stdout[-1500:]}\n{result.stderr[-1500:]}"
    return f"pytest ended with {result.returncode}:\n{said}"


def table() -> str:
    """Return the text of tests/mutants.md."""
    lines = [
        "# Seeded faults",
        "",
        "Each is applied to a copy of the source by `python tests/mutants.py`, and its test must",
        "fail. This page is written by `python tests/mutants.py --write`.",
        "",
        "| fault | where | caught by |",
        "|---|---|---|",
        *(f"| {m.fault} | `{m.module}` | `{m.test}` |" for m in MUTANTS),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run every mutant that this environment can run."""
    if "--write" in sys.argv:
        (ROOT / "tests" / "mutants.md").write_text(table())
        return 0
    has_torch = find_spec("torch") is not None
    part, of = map(int, sys.argv[1].split("/")) if sys.argv[1:] else (0, 1)
    chosen = [mutant for mutant in MUTANTS[part::of] if has_torch or not mutant.needs_torch]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(survives, chosen))
    for mutant, verdict in zip(chosen, verdicts, strict=True):
        print(f"{'caught' if verdict is None else 'NOT CAUGHT'}: {mutant.fault}")
        if verdict is not None:
            print(verdict)
    caught = sum(verdict is None for verdict in verdicts)
    print(f"{caught} of {len(chosen)} caught, of {len(MUTANTS)} in all")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
