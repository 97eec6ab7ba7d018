"""What tests/suites/torch.bats looks at, into the current folder: torch2graph as often as it takes, in one process."""
import contextlib
import io
import os
import shlex
import sys
import warnings

here = os.path.dirname(os.path.abspath(__file__))
script = os.path.join(here, "..", "..", "scripts", "torch2graph")
code = compile(open(script).read(), script, "exec")
sys.path.insert(0, here)


def torch2graph(line):
    """Status, output, messages."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    sys.argv = ["torch2graph"] + line.split()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            exec(code, {"__name__": "__main__"})
        except SystemExit as end:
            status = end.code or 0
    return status, out.getvalue(), err.getvalue()


for name, line in {
        "resnet50": "torchvision.models:resnet50 --input 32,3,224,224",
        "encoder": "torch_models:encoder --input 2,5,8",
        "gpt": "torch_models:GPT --input 2,5:int64",
        "fused": "torch_models:fused_gpt --input 2,5:int64",
        "vit": "torchvision.models:vit_b_16 --input 1,3,224,224",
        "adapter": "torch_models:Adapter --input 4,64",
        "lookups": "torch_models:Lookups --input 2,5:int64",
        "buffered": "torch_models:Buffered --input 2,5:int64",
        "pair": "torch_models:Pair --input 2,4 --input 2,4",
        "timed": "torch_models:encoder --input 2,5,8 --measure --repeat 1",
        "small": "torch_models:Small --input 2,5:int64 --precision fp32",
        "measured": "torch_models:Small --input 2,5:int64 --measure --repeat 1",
        "lstm": "torch_models:recurrent --input 2,4 --measure --repeat 1 --no-job"}.items():
    status, out, err = torch2graph(line)
    if status or err:
        sys.exit(f"{line}: {status} {err}")
    open(name + ".rec", "w").write(out)
with open("errors", "w") as errors:
    for line in ("torch_models:gated --input 2,4", "torch_models:recurrent --input 2,4", "torch_models:nothing --input 2",
                 "torch_models:absent --input 2", "absent:model --input 2", "torch_models:Small --input 2,x",
                 "torch_models: --input 2", "torch_models:Small --input 2 --precision int8",
                 "torch_models:Small --input 2 --repeat 3", "torch_models:Small", "torch_models:Pair --input 2,4",
                 "torch_models:Small --input 2,5:int64 --input 3",
                 "torch_models:Pair --input 2,4 --input 2,4 --input 2,4"):
        status, out, err = torch2graph(line)
        errors.write(f"{status} {err}".replace(sys.executable, "python3") + ("(and output)\n" if out else ""))

import torch  # noqa: E402 (torch2graph has it by now)
import torch_models  # noqa: E402

warnings.simplefilter("ignore")
for line in "torch_models:gated --input 2,4", "torch_models:recurrent --input 2,4":
    said = shlex.split(torch2graph(line)[2].partition("try: ")[2])
    if said[0] != sys.executable or said[1] != "-c" or said[3:5] != ["&&", "onnx2graph"]:
        sys.exit(f"{line}: {said}")
    exec(said[2], {})  # which writes what onnx2graph is told to read, said[5]
for name, model, x in (("encoder", torch_models.encoder(), torch.zeros(2, 5, 8)),
                       ("gpt", torch_models.GPT(), torch.zeros(2, 5, dtype=torch.int64)),
                       ("words", torch_models.Small(), torch.zeros(2, 5, dtype=torch.int64)),
                       ("patches", torch_models.Patches(), torch.zeros(1, 3, 8, 8))):
    for weights in True, False:
        torch.onnx.export(model, x, name + ("" if weights else "-bare") + ".onnx", export_params=weights, opset_version=13,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
