from __future__ import annotations

import builtins
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fleetfoot


@pytest.fixture(scope="module")
def line(home_line: fleetfoot.Scenario) -> fleetfoot.Scenario:
    return home_line.with_(run__duration="3 s")


@pytest.fixture(scope="module")
def compared(line: fleetfoot.Scenario) -> fleetfoot.Result:
    return fleetfoot.compare(line, only=["codel", "fq-codel"], seeds=2, budget=0, traces=True)


def test_tables_leave_by_every_door(compared: fleetfoot.Result) -> None:
    runs = compared.to_arrow()
    assert runs.num_rows == len(compared.runs) == len(compared.variants) * 2 * 6
    assert pa.table(compared).equals(runs)
    assert compared.runs.column_names == runs.column_names
    assert set(runs["variant"].to_pylist()) == set(compared.variants)
    samples = compared.to_pandas("samples")
    assert samples["size_bytes"].dtype == np.uint64
    # The mean of a run is that of its flows.
    mean = samples.query("variant == 'codel' and seed == 1 and group == 'game'")["fct_s"].mean()
    row = compared.to_pandas().query("variant == 'codel' and seed == 1 and group == 'game'")
    assert row["fct_mean_s"].item() == pytest.approx(mean, rel=1e-12)
    assert compared.to_polars("links").height == len(compared.links)
    # A table does not live from the result it is of.
    table = compared.samples
    first, again = table.to_arrow(), table.to_arrow()
    del table
    assert first.equals(again)


def test_a_table_that_is_not_there_and_samples_that_were_not_kept(compared: fleetfoot.Result) -> None:
    with pytest.raises(fleetfoot.UsageError, match="there are runs, samples"):
        compared.table("flows")
    short = compared.without_samples()
    assert short == compared
    assert short.nbytes < compared.nbytes / 2
    with pytest.raises(fleetfoot.UsageError, match="samples=True"):
        _ = short.samples
    assert [chart.id for chart in short.charts()] == [c.id for c in compared.charts() if c.id != "distribution"]


def test_traces_are_of_the_scenario_and_the_best(compared: fleetfoot.Result) -> None:
    traces = {name: table.to_pandas() for name, table in compared.traces().items()}
    states, segments = traces["states"], traces["segments"]
    assert "as described" in set(states["variant"])
    assert (states["cwnd_bytes"] > 0).all()
    assert states.groupby(["variant", "group", "flow"])["acked_bytes"].apply(lambda a: a.is_monotonic_increasing).all()
    assert set(segments["retransmission"]) <= {"true", "false"}
    assert (segments["size_bytes"] > 0).all()


def test_it_is_shown(compared: fleetfoot.Result, line: fleetfoot.Scenario) -> None:
    html = compared._repr_html_()
    assert "<table>" in html
    for name in ("codel", "fq-codel"):
        assert name in html
    single = fleetfoot.run(line.with_(title="a <b> c"))._repr_html_()
    assert "a &lt;b&gt; c" in single
    assert "<table>" not in single
    assert "2 seeds" in repr(compared)


def test_charts_are_those_of_the_report(compared: fleetfoot.Result) -> None:
    charts = compared.charts()
    assert [chart.id for chart in charts] == ["change", "size", "distribution", "delay", "utilisation"]
    for chart in charts:
        spec = chart.to_dict()
        assert spec["data"]["values"], chart.id
        assert compared.to_dict()["scenario"] in spec["title"]["text"]
        drawn: Any = chart.to_altair()
        assert drawn.to_dict()["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
        assert chart._repr_mimebundle_()["application/vnd.vegalite.v6+json"] == spec
        drawn_png = chart._repr_png_()
        assert drawn_png is not None
        assert drawn_png[0].startswith(b"\x89PNG")
        assert 300 < drawn_png[1]["width"] < 1500, chart.id
    assert compared.plot().id == "change"
    assert compared.plot("delay").id == "delay"
    with pytest.raises(fleetfoot.UsageError, match="there are: change"):
        compared.plot("pie")


def test_pickled_results_are_whole(compared: fleetfoot.Result) -> None:
    again = pickle.loads(pickle.dumps(compared))
    assert again == compared
    assert again.to_arrow("samples").equals(compared.to_arrow("samples"))
    assert again.traces()["states"].to_arrow().equals(compared.traces()["states"].to_arrow())
    assert again.scenario == compared.scenario
    assert (again.computed, again.reused, again.wall_s) == (compared.computed, compared.reused, compared.wall_s)
    event = fleetfoot.Progress("runs", "codel", 1, 1, 2, 0, 0.1)
    for other in (event, fleetfoot.mechanisms(), fleetfoot.explain("codel"), compared.charts()[0].to_dict()):
        assert pickle.loads(pickle.dumps(other)) == other


def test_what_was_damaged_is_refused(compared: fleetfoot.Result) -> None:
    rebuild, (document, about, runs, counts) = compared.__reduce__()
    broken = rebuild(document[:-9], about, runs, counts)
    with pytest.raises(fleetfoot.RunError, match="damaged"):
        broken.to_json()
    other = rebuild(document, runs, about, counts)
    with pytest.raises(fleetfoot.RunError, match="reads its own only"):
        _ = other.samples


def test_a_saved_folder_is_the_programs(compared: fleetfoot.Result, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    compared.save(folder)
    assert (folder / "result.json").read_text() == compared.to_json()
    for name in ("runs", "samples", "links"):
        assert pq.read_table(folder / f"{name}.parquet").equals(compared.to_arrow(name))
    assert "</html>" in (folder / "report.html").read_text()
    assert fleetfoot.Scenario.load(folder / "scenario.toml").to_toml() == compared.scenario.to_toml()
    compared.save(folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(fleetfoot.UsageError, match="holds something else"):
        compared.save(tmp_path / "other")
    compared.save(tmp_path / "other", force=True)


@pytest.mark.parametrize(
    ("library", "call"), [("pyarrow", "to_arrow"), ("pandas", "to_pandas"), ("polars", "to_polars")]
)
def test_a_library_that_is_missing_is_named_with_what_installs_it(
    library: str, call: str, compared: fleetfoot.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == library:
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("importlib.import_module", without)
    with pytest.raises(fleetfoot.MissingExtraError, match=rf'{library} is not installed: pip install "{library}>='):
        getattr(compared, call)()


def test_parts_of_a_variant_are_indented_under_it() -> None:
    line = fleetfoot.Scenario.home_line().with_(run__duration="4 s", run__warmup="1 s", run__drain="4 s")
    html = fleetfoot.compare(line, only="codel", seeds=3, budget=0)._repr_html_()
    indented = re.findall(r'<td style="text-align: left; padding-left: 2em">([^<]*)</td>', html)
    assert [name.removesuffix(" only").rpartition(" at ")[0] for name in indented] == ["codel"] * 2
    assert re.search(r'<td style="text-align: left">\*?codel</td>', html)


def test_ten_thousand_results_fit_into_memory(line: fleetfoot.Scenario) -> None:
    result = fleetfoot.run(line.with_(run__duration="10 s"), samples=False)
    # Kept are bytes that do not grow with what is asked of them.
    before = result.nbytes
    _ = result.to_dict(), result._repr_html_(), result.charts()
    assert result.nbytes == before
    assert 10_000 * before < 200e6
    many = [fleetfoot.run(line.with_(run__duration="600 ms"), seed=seed, samples=False) for seed in range(50)]
    assert max(one.nbytes for one in many) < 20_000
