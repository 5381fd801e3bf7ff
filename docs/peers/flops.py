"""Compares floating point operations by op with those of TraceLens, and proves each difference.

    python3 docs/peers/flops.py KINETOSCOPE TRACE=FOLDER...

FOLDER has the CSV files that TraceLens_generate_perf_report_pytorch --output_csvs_dir writes of TRACE (GEMM.csv, SDPA_fwd.csv,
CONV_fwd.csv). A cause in brackets is one that the script has computed: with it, the two figures are equal to 1e-6.
"""

import ast
import csv
import json
import pathlib
import subprocess
import sys

CAUSES = {
    1: "TraceLens adds the additions of the bias; Kinetoscope counts them apart.",
    2: "Of causal attention TraceLens counts half of all pairs of query and key; Kinetoscope counts the pairs that the mask "
    "leaves, n (n + 1) / 2 of n^2.",
    3: "TraceLens counts the op around the one that launches the kernels; it is the same call.",
}
# TraceLens reads the outer op where Kinetoscope counts the inner one.
INNER = {
    "aten::_scaled_dot_product_flash_attention": "aten::_flash_attention_forward",
    "aten::_scaled_dot_product_efficient_attention": "aten::_efficient_attention_forward",
    "aten::convolution": "aten::miopen_convolution",
}


def theirs(folder):
    """By op: operations, and those that the causal mask would add."""
    sums, more = {}, {}
    for name in ("GEMM.csv", "SDPA_fwd.csv", "CONV_fwd.csv"):
        path = pathlib.Path(folder, name)
        if not path.exists():
            continue
        for row in csv.DictReader(path.open()):
            op, n = row["name"], float(row["name_count"])
            sums[op] = sums.get(op, 0.0) + 1e9 * float(row["GFLOPS_first"]) * n
            if name == "SDPA_fwd.csv" and row["param: causal"] == "True":
                of = lambda key: float(ast.literal_eval(row["param: " + key]))
                pairs = of("N_Q") / 2
                size = of("d_h_qk") + of("d_h_v")
                more[op] = more.get(op, 0.0) + 2 * of("B") * of("H_Q") * size * pairs * n
    return sums, more


def equal(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1.0)


def main():
    program, *pairs = sys.argv[1:]
    print("| trace | op | Kinetoscope, GFLOP | TraceLens, GFLOP |\n|---|---|---:|---:|")
    unexplained = 0
    for pair in pairs:
        trace, folder = pair.split("=", 1)
        out = subprocess.run([program, "cpu", trace, "--json", "--all"], check=True, capture_output=True)
        ours = {row["name"]: row for row in json.loads(out.stdout)["flops"]["ops"]}
        sums, more = theirs(folder)
        for op, other in sorted(sums.items(), key=lambda item: -item[1]):
            row, causes = ours.get(op), []
            if (row is None or not row["counted"]) and op in INNER:
                row = ours.get(INNER[op])
                causes.append(3)
            if row is None:
                continue
            own = row["flops"]
            if not equal(own, other):
                if equal(own + row["bias_flops"], other):
                    causes.append(1)
                elif equal(own, other + more.get(op, 0.0)):
                    causes.append(2)
                else:
                    causes.append("?")
                    unexplained += 1
            marks = "".join(f" [{cause}]" for cause in causes)
            name = pathlib.Path(trace).name.split(".json")[0]
            print(f"| {name} | `{op}` | {own / 1e9:.3f} | {other / 1e9:.3f}{marks} |")
    print()
    for number, text in CAUSES.items():
        print(f"{number}. {text}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
