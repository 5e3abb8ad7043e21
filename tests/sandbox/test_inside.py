# ruff: noqa: E501
"""What scripts of data scientists do must work inside, and give what a fresh interpreter gives."""

from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from sandmle.config import SandboxSection
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.types import Limits


@pytest.fixture(scope="module", params=["ns", "cold"])
def inside(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    made = open_sandbox(SandboxSection(backend=request.param), workers=2)
    yield made
    made.close()


def needs(*names: str) -> pytest.MarkDecorator:
    absent = [name for name in names if find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"{absent} not installed")


WORKS = {
    "numpy": ("import numpy as np\nprint(np.linalg.inv(np.eye(3) * 2).sum())", "1.5"),
    "blas": (
        "import numpy as np\na = np.arange(90000.).reshape(300, 300) % 7\nprint(int((a @ a).sum()))",
        "242994290",
    ),
    "pandas": (
        "import pandas as pd\ndf = pd.read_csv('input/train.csv')\n"
        "print(df.groupby('id').x.mean().to_dict())",
        "{'a': 1.0}",
    ),
    "scipy": (
        "from scipy import optimize, stats, sparse\n"
        "print(round(optimize.minimize(lambda v: (v[0] - 3) ** 2, [0.0]).x[0], 3))",
        "3.0",
    ),
    "sklearn_all_cores": (
        "import numpy as np\nfrom sklearn.ensemble import RandomForestClassifier\n"
        "from sklearn.model_selection import GridSearchCV\nX = np.random.RandomState(0).rand(80, 4)\n"
        "y = (X[:, 0] > 0.5).astype(int)\n"
        "g = GridSearchCV(RandomForestClassifier(10, n_jobs=-1, random_state=0),"
        " {'max_depth': [1, 2]}, n_jobs=-1, cv=3).fit(X, y)\nprint(g.best_score_ > 0.9)",
        "True",
    ),
    "sklearn_two_jobs": (
        "import numpy as np\nfrom sklearn.ensemble import HistGradientBoostingRegressor\n"
        "from sklearn.model_selection import cross_val_score\nX = np.random.RandomState(0).rand(60, 3)\n"
        "s = cross_val_score(HistGradientBoostingRegressor(), X, X[:, 0], n_jobs=2, cv=3)\n"
        "print(len(s))",
        "3",
    ),
    "gaussian_mixture": (
        "import numpy as np\nfrom sklearn.mixture import GaussianMixture\n"
        "X = np.r_[np.zeros((30, 2)), np.ones((30, 2)) * 9] + np.random.RandomState(0).rand(60, 2)\n"
        "print(len(set(GaussianMixture(2, random_state=0).fit_predict(X))))",
        "2",
    ),
    "joblib": (
        "from joblib import Parallel, delayed, Memory\n"
        "print(Parallel(n_jobs=2)(delayed(pow)(i, 2) for i in range(4)))",
        "[0, 1, 4, 9]",
    ),
    "pool_by_fork": (
        "import multiprocessing as mp\ndef f(x):\n    return x * x\n"
        "with mp.get_context('fork').Pool(2) as p:\n    print(p.map(f, range(4)))",
        "[0, 1, 4, 9]",
    ),
    "pool_by_spawn": (
        "import multiprocessing as mp\ndef f(x):\n    return x * x\n"
        "if __name__ == '__main__':\n    with mp.get_context('spawn').Pool(2) as p:\n"
        "        print(p.map(f, range(4)))",
        "[0, 1, 4, 9]",
    ),
    "queues_and_locks": (
        "import multiprocessing as mp\ndef f(q, n):\n    with n.get_lock():\n        n.value += 1\n"
        "        q.put(n.value)\nq, n = mp.Queue(), mp.Value('i', 0)\n"
        "ps = [mp.Process(target=f, args=(q, n)) for _ in range(3)]\n[p.start() for p in ps]\n"
        "print(sorted(q.get() for _ in ps))\n[p.join() for p in ps]",
        "[1, 2, 3]",
    ),
    "manager": (
        "import multiprocessing as mp\nif __name__ == '__main__':\n    with mp.Manager() as m:\n"
        "        d = m.dict(a=1)\n        print(dict(d))",
        "{'a': 1}",
    ),
    "process_executor": (
        "from concurrent.futures import ProcessPoolExecutor\ndef f(x):\n    return x + 1\n"
        "if __name__ == '__main__':\n    with ProcessPoolExecutor(2) as e:\n"
        "        print(list(e.map(f, range(3))))",
        "[1, 2, 3]",
    ),
    "thread_executor": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as e:\n    print(sum(e.map(lambda x: x, range(5))))",
        "10",
    ),
    "shared_memory": (
        "from multiprocessing import shared_memory\ns = shared_memory.SharedMemory(create=True, size=64)\n"
        "s.buf[0] = 7\nt = shared_memory.SharedMemory(s.name); print(t.buf[0])\nt.close(); s.close(); s.unlink()",
        "7",
    ),
    "pickled_class": (
        "import pickle\nclass A:\n    def __init__(self):\n        self.x = 5\n"
        "pickle.dump(A(), open('a.pkl', 'wb'))\nprint(pickle.load(open('a.pkl', 'rb')).x)",
        "5",
    ),
    "dataclass_and_inspect": (
        "import inspect, dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 3\n"
        "print(A(), len(inspect.getsource(A).splitlines()))",
        "A(x=3) 3",
    ),
    "subprocess_python": (
        "import subprocess, sys\nopen('m.py', 'w').write('import numpy; print(numpy.ones(3).sum())')\n"
        "print(subprocess.run([sys.executable, 'm.py'], capture_output=True, text=True).stdout, end='')",
        "3.0",
    ),
    "subprocess_shell": ("import subprocess\nprint(subprocess.getoutput('echo a | tr a b'))", "b"),
    "import_own_module": (
        "open('helper.py', 'w').write('def f():\\n    return 42')\nimport helper\nprint(helper.f())",
        "42",
    ),
    "main_guard": (
        "def main():\n    print('main', __name__)\nif __name__ == '__main__':\n    main()",
        "main __main__",
    ),
    "own_path": (
        "from pathlib import Path\nprint((Path(__file__).parent / 'input' / 'train.csv').exists())",
        "True",
    ),
    "argv": ("import sys\nprint(len(sys.argv), sys.argv[0] == __file__)", "1 True"),
    "temporary_files": (
        "import tempfile\nwith tempfile.NamedTemporaryFile() as f, tempfile.TemporaryDirectory() as d:\n"
        "    f.write(b'x'); print('ok')",
        "ok",
    ),
    "exit_functions": (
        "import atexit, weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\n"
        "atexit.register(print, 'bye')\nprint('hi')",
        "hi\nbye\nfinalized",
    ),
    "threads_are_joined": (
        "import threading, time\n"
        "def f():\n    time.sleep(0.2); print('late')\nthreading.Thread(target=f).start()\nprint('early')",
        "early\nlate",
    ),
    "logging": (
        "import logging, sys\nlogging.basicConfig(stream=sys.stdout, level=logging.INFO,"
        " format='%(message)s')\nlogging.info('seen')",
        "seen",
    ),
    "sqlite": (
        "import sqlite3\nc = sqlite3.connect('x.db')\nc.execute('create table t (a)')\n"
        "c.execute('insert into t values (3)')\nc.commit()\n"
        "print(c.execute('select a from t').fetchone())",
        "(3,)",
    ),
    "loopback": (
        "import socket, threading\ns = socket.create_server(('127.0.0.1', 0))\n"
        "threading.Thread(target=lambda: s.accept()[0].sendall(b'hi')).start()\n"
        "print(socket.create_connection(s.getsockname()).recv(9))",
        "b'hi'",
    ),
    "asyncio": (
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 4\n"
        "print(asyncio.run(f()))",
        "4",
    ),
    "user": (
        "import getpass, os, pathlib\nprint(getpass.getuser(), pathlib.Path.home() == "
        "pathlib.Path(os.environ['HOME']), os.path.expanduser('~') == os.environ['HOME'])",
        "agent True True",
    ),
    "time_zones": (
        "import pandas as pd\nprint(pd.Timestamp('2020-07-01', tz='Europe/Berlin').utcoffset())",
        "2:00:00",
    ),
    "warnings_are_shown": (
        "import warnings, sys\nsys.stderr = sys.stdout\nwarnings.warn('careful')",
        None,
    ),
    "interrupt": (
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt:\n    print('caught')",
        "caught",
    ),
    "alarm": (
        "import signal, time\ndef f(*a):\n    raise TimeoutError('rang')\n"
        "signal.signal(signal.SIGALRM, f)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "try:\n    time.sleep(5)\nexcept TimeoutError as e:\n    print(e)",
        "rang",
    ),
}
EXTRA = {
    "pillow": (
        ("PIL",),
        "from PIL import Image\nimport numpy as np\nImage.fromarray(np.full((8, 8), 7, 'uint8'))"
        ".save('x.png')\nprint(np.asarray(Image.open('x.png').resize((2, 2))).tolist())",
        "[[7, 7], [7, 7]]",
    ),
    "matplotlib": (
        ("matplotlib",),
        "import matplotlib.pyplot as plt, os\nplt.plot([1, 2]); plt.title('α')\n"
        "plt.savefig('x.png'); plt.show()\nprint(plt.get_backend().lower(), os.path.getsize('x.png') > 999)",
        "agg True",
    ),
    "lightgbm": (
        ("lightgbm",),
        "import lightgbm as lgb, numpy as np\nX = np.random.RandomState(0).rand(80, 3)\n"
        "m = lgb.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=2).fit(X, X[:, 0])\n"
        "print(m.predict(X).shape)",
        "(80,)",
    ),
    "torch_training": (
        ("torch",),
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "torch.manual_seed(0)\nX = torch.rand(64, 3); y = X.sum(1, keepdim=True)\n"
        "m = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))\n"
        "o = torch.optim.Adam(m.parameters(), 1e-2)\n"
        "for _ in range(20):\n    for a, b in DataLoader(TensorDataset(X, y), 16, num_workers=2):\n"
        "        o.zero_grad(); l = ((m(a) - b) ** 2).mean(); l.backward(); o.step()\n"
        "torch.save(m.state_dict(), 'm.pt'); m.load_state_dict(torch.load('m.pt'))\n"
        "print(l.item() < 0.1, torch.cuda.is_available())",
        "True False",
    ),
    "hub_without_network": (
        ("transformers",),
        "from transformers import AutoModel\nimport time\nt = time.time()\n"
        "try:\n    AutoModel.from_pretrained('bert-base-uncased')\n"
        "except OSError as e:\n    print('connect' in str(e), time.time() - t < 30)",
        "True True",
    ),
    "torch_compile": (
        ("torch",),
        "import torch\nf = torch.compile(lambda x: x * 2)\nprint(f(torch.ones(2)).tolist())",
        "[2.0, 2.0]",
    ),
}


@pytest.mark.parametrize("name", WORKS)
def test_it_works(inside: Sandbox, public: Path, name: str) -> None:
    code, expected = WORKS[name]
    result = inside.open(public, Limits(wall_s=60)).run(code)
    assert result.status == "ok", result
    if expected is not None:
        assert result.stdout == f"{expected}\n"
        assert result.stderr == ""
    else:
        assert "UserWarning: careful" in result.stdout


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs(*packages)) for name, (packages, _, _) in EXTRA.items()]
)
def test_it_works_where_it_is_installed(inside: Sandbox, public: Path, name: str) -> None:
    _, code, expected = EXTRA[name]
    result = inside.open(public, Limits(wall_s=80)).run(code)
    assert result.status == "ok", result
    assert result.stdout == f"{expected}\n"


def test_a_model_of_one_run_is_used_by_the_next(inside: Sandbox, public: Path) -> None:
    workspace = inside.open(public, Limits())
    workspace.run(
        "import pickle, tempfile, os\nfrom sklearn.linear_model import LinearRegression\n"
        "m = LinearRegression().fit([[0], [1]], [0, 2])\npickle.dump(m, open('m.pkl', 'wb'))\n"
        "for folder in (tempfile.gettempdir(), os.path.expanduser('~')):\n"
        "    open(folder + '/note', 'w').write('kept')"
    )
    result = workspace.run(
        "import pickle, tempfile, os\nprint(pickle.load(open('m.pkl', 'rb')).predict([[2]])[0].round(6))\n"
        "for folder in (tempfile.gettempdir(), os.path.expanduser('~')):\n"
        "    print(open(folder + '/note').read())"
    )
    assert result.stdout == "4.0\nkept\nkept\n"


def test_what_a_program_patches_is_gone_in_the_next(inside: Sandbox, public: Path) -> None:
    workspace = inside.open(public, Limits())
    patch = "import pandas as pd, builtins, json\npd.read_csv = json.loads = builtins.open = None"
    workspace.run(patch)
    code = "import pandas as pd, json\nprint(pd.read_csv, json.loads('1'), open('input/train.csv'))"
    assert workspace.run(code).status == "ok"


def test_chained_errors_are_told_without_our_lines(inside: Sandbox, public: Path) -> None:
    code = "def f():\n    return {}['k']\ntry:\n    f()\nexcept KeyError as e:\n    raise ValueError('v') from e"
    result = inside.open(public, Limits()).run(code)
    assert "line 2, in f" in result.stderr
    assert "direct cause" in result.stderr
    assert result.stderr.rstrip().endswith("ValueError: v")
    assert "sandmle" not in result.stderr
    assert "inside/program.py" not in result.stderr


def test_a_crash_shows_where_it_was(inside: Sandbox, public: Path) -> None:
    code = "import ctypes, numpy\nprint('before')\nctypes.string_at(0)"
    result = inside.open(public, Limits()).run(code)
    assert (result.status, result.signal, result.stdout) == ("killed", 11, "before\n")
    assert "Segmentation fault" in result.stderr
    assert 'script.py", line 3' in result.stderr
    assert "Extension modules" not in result.stderr
    assert result.stderr.count("File") == 2, "ctypes and the script"


@pytest.mark.parametrize(
    ("limits", "code", "status", "text"),
    [
        ({"memory_mb": 300}, "x = bytearray(10**9)", "error", "MemoryError"),
        ({"memory_mb": 300}, "import numpy as np; np.ones(10**9)", "error", "Unable to allocate"),
        ({"disk_mb": 1}, "open('big', 'wb').write(b'x' * 10**7)", "error", "File too large"),
        ({"processes": 20}, "import os\nwhile True: os.fork() or os.pause()", "error", "Resource"),
        ({"cpu_s": 1.0}, "while True: pass", "killed", ""),
    ],
)
def test_limits_are_told_plainly(
    inside: Sandbox, public: Path, limits: dict[str, float], code: str, status: str, text: str
) -> None:
    code = code.replace("os.pause()", "__import__('time').sleep(60)")
    result = inside.open(public, Limits(wall_s=30, **limits)).run(code)
    assert result.status == status
    assert text in result.stderr


def test_memory_of_all_processes_is_added_up(inside: Sandbox, public: Path) -> None:
    code = (
        "import os, time\nfor i in range(8):\n    if os.fork() == 0:\n"
        "        x = b'x' * 60_000_000; time.sleep(30); os._exit(0)\ntime.sleep(30)"
    )
    result = inside.open(public, Limits(wall_s=25, memory_mb=300)).run(code)
    assert result.status == "oom"
    assert result.peak_mb > 250


def test_without_network_names_do_not_resolve_and_fail_at_once(
    inside: Sandbox, public: Path
) -> None:
    code = "import urllib.request\nurllib.request.urlopen('http://example.com', timeout=60)"
    result = inside.open(public, Limits(wall_s=30)).run(code)
    assert result.status == "error"
    assert "URLError" in result.stderr


def test_with_network_the_hosts_loopback_is_reached(inside: Sandbox, public: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('there')"
        assert inside.open(public, Limits()).run(code).status == "error"
        workspace = inside.open(public, Limits(network=True))
        for _ in range(2):
            assert workspace.run(code).stdout == "there\n"
        assert inside.open(public, Limits()).run(code).status == "error"


def test_nothing_is_left_out_of_what_is_imported_beforehand(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A module that starts a thread is not preloaded, nor is whatever imports it: all are slow."""
    with closing(open_sandbox(SandboxSection(preload="full"))):
        assert "starts a thread" not in caplog.text
