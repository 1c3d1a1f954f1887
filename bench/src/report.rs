//! The report, made of the measurements: a table in Markdown and a plot in SVG with one row a case, and a
//! chart of a few cases.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// One measurement: a line of `results.jsonl`.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Line {
    pub(crate) case: String,
    pub(crate) engine: String,
    /// Whether it was measured in another process.
    #[serde(default)]
    pub(crate) outside: bool,
    #[serde(rename = "type")]
    pub(crate) element: String,
    pub(crate) shapes: Vec<Vec<usize>>,
    pub(crate) threads: usize,
    /// Seconds a call, of the quickest and of half of the calls.
    pub(crate) best: f64,
    pub(crate) median: f64,
    /// The floor's median, where the case has one: in huge pages for what is measured outside.
    pub(crate) floor: Option<f64>,
    /// The share of the floor that it reaches, round by round; earlier runs did not keep it.
    #[serde(default)]
    pub(crate) share: Option<f64>,
    /// What must move.
    pub(crate) bytes: usize,
    /// How many cores all threads had, half of the time.
    #[serde(default)]
    pub(crate) cores: Option<f64>,
    /// How the case's program runs, in the lines of that engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<String>,
    pub(crate) machine: String,
}

impl Line {
    /// The share of the floor that it reaches.
    pub(crate) fn share(&self) -> Option<f64> {
        self.share.or_else(|| Some(self.floor? / self.median))
    }

    /// How many times faster than the other one it is.
    fn against(&self, other: &Self) -> f64 {
        other.median / self.median
    }
}

/// A case with its measurements.
pub(crate) struct Row {
    pub(crate) case: String,
    /// What the chart calls it, if it is shown there.
    pub(crate) chart: Option<String>,
    pub(crate) lines: Vec<Line>,
}

/// Whose measurement it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Floor,
    Ours,
    ByHand,
    Peer,
}

fn whose(engine: &str) -> Whose {
    let begins = |with: &[&str]| with.iter().any(|with| engine.starts_with(with));
    match engine {
        "hand" => Whose::ByHand,
        _ if begins(&["floor"]) => Whose::Floor,
        _ if begins(&["ours", "program", "operator", "simulcast"]) => Whose::Ours,
        _ => Whose::Peer,
    }
}

/// Where it was measured: in this process or outside.
#[derive(Clone, Copy)]
struct Side {
    outside: bool,
    floor: &'static str,
}

const RUST: Side = Side { outside: false, floor: "floor" };
const PYTHON: Side = Side { outside: true, floor: "floor-huge" };

impl Row {
    fn best(&self, of: Whose, side: Side) -> Option<&Line> {
        let lines = self.lines.iter().filter(|line| whose(&line.engine) == of);
        let lines = lines.filter(|line| match of {
            Whose::Floor => line.engine == side.floor,
            _ => line.outside == side.outside,
        });
        lines.min_by(|a, b| a.median.total_cmp(&b.median))
    }

    /// Ours, and the best peer of each side.
    fn bars(&self) -> Vec<(&Line, &'static str)> {
        let both = |whose| [RUST, PYTHON].map(|side| self.best(whose, side));
        let fills = ["#1f6f8b", "#5aa0b8", "#c9a26b", "#dcc7a1"];
        let lines = both(Whose::Ours).into_iter().chain(both(Whose::Peer));
        lines.zip(fills).filter_map(|(line, fill)| Some((line?, fill))).collect()
    }
}

/// A time as people read it.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.1} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// A number of bytes as people read it.
pub(crate) fn size(bytes: usize) -> String {
    match bytes as f64 {
        b if b < 1e3 => format!("{bytes} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b => format!("{:.1} MB", b / 1e6),
    }
}

/// The table: what must move, our share of the floor, the best peer, and how many times faster than it we are, in
/// Rust and from Python.
pub(crate) fn table(rows: &[Row], machine: &str) -> String {
    let mut text = format!(
        "Medians of each engine, all in turn, in one run on {machine}. The floor is what must move, moved as fast\n\
         as the machine moves it; shares of it are taken round by round, and the median is shown. Arrays of Python lie in\n\
         huge pages, those of Rust do not: each side has its floor. The cores are those that all threads had, by how fast\n\
         they divide side by side.\n\n\
         | case | must move | floor | ours | of it | best peer | ours against it | by hand, one thread | from Python: floor | ours | of it | best peer | ours against it | cores | strategy of the program |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let [rust, python] = [RUST, PYTHON].map(|side| cells(row, side));
        let by_hand = row.best(Whose::ByHand, RUST).map_or("-".into(), |line| time(line.median));
        let cores = row.lines.iter().find_map(|line| line.cores);
        let cores = cores.map_or("-".into(), |cores| format!("{cores:.1}"));
        let strategy = row.lines.iter().find_map(|line| line.strategy.as_deref()).unwrap_or("-");
        let (case, strategy) = (&row.case, strategy.replace('|', "\\|"));
        let moved = row.lines.first().map_or("-".into(), |line| size(line.bytes));
        let _ = writeln!(
            text,
            "| {case} | {moved} | {rust} | {by_hand} | {python} | {cores} | {strategy} |"
        );
    }
    text
}

/// What there is to say of a case on a side.
fn cells(row: &Row, side: Side) -> String {
    let named = |line: &Line| format!("{} {}", line.engine, time(line.median));
    let (ours, peer) = (row.best(Whose::Ours, side), row.best(Whose::Peer, side));
    let share = ours.and_then(Line::share).map(|share| format!("{:.0}%", share * 100.0));
    let against = ours.zip(peer).map(|(ours, peer)| format!("{:.2}x", ours.against(peer)));
    let floor = row.best(Whose::Floor, side).map(|line| time(line.median));
    let cells = [floor, ours.map(named), share, peer.map(named), against];
    cells.map(|cell| cell.unwrap_or_else(|| "-".into())).join(" | ")
}

const LEFT: usize = 130;
const WIDE: usize = 520;
const BAR: usize = 9;
const STEP: usize = 54;

/// The plot: up to four bars a case, ours and the best peers, in Rust and from Python, as shares of the
/// floor.
pub(crate) fn plot(rows: &[Row], machine: &str) -> String {
    let rows: Vec<&Row> =
        rows.iter().filter(|row| row.best(Whose::Floor, RUST).is_some()).collect();
    let high = 60 + STEP * rows.len();
    let at = |share: f64| (LEFT as f64 + share.min(1.25) / 1.25 * WIDE as f64).round();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"{high}\" viewBox=\"0 0 860 {high}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"860\" height=\"{high}\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"13\">Share of the floor, longer is better: {}</text>\n",
        escaped(machine)
    );
    for percent in [25, 50, 75, 100] {
        let x = at(f64::from(percent) / 100.0);
        let line = if percent == 100 { "#444" } else { "#ddd" };
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"40\" x2=\"{x}\" y2=\"{high}\" stroke=\"{line}\"/>\
             <text x=\"{x}\" y=\"36\" text-anchor=\"middle\">{percent}%</text>"
        );
    }
    for (n, row) in rows.iter().enumerate() {
        let top = 48 + n * STEP;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LEFT - 8,
            top + 18,
            escaped(&row.case)
        );
        for (k, (line, fill)) in row.bars().into_iter().enumerate() {
            let (y, share) = (top + k * (BAR + 2), line.share().unwrap_or(0.0));
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{}\" height=\"{BAR}\" fill=\"{fill}\"/>\
                 <text x=\"{}\" y=\"{}\" font-size=\"9\" fill=\"#444\">{} {:.0}%</text>",
                at(share) - LEFT as f64,
                at(share) + 4.0,
                y + BAR - 1,
                escaped(&line.engine),
                share * 100.0
            );
        }
    }
    svg + "</svg>\n"
}

/// The chart: from Python, ours, the best peer and NumPy as shares of the machine's memory speed, for the
/// cases that have words for it. Its colours are read on white and on black.
pub(crate) fn chart(rows: &[Row], machine: &str) -> String {
    const LEFT: usize = 230;
    const WIDE: f64 = 420.0;
    const STEP: usize = 50;
    const MOST: f64 = 1.2;
    let shown = rows.iter().filter_map(|row| Some((row.chart.as_deref()?, of_chart(row)?)));
    let shown: Vec<_> = shown.collect();
    let high = 62 + STEP * shown.len();
    let at = |share: f64| (LEFT as f64 + share.min(MOST) / MOST * WIDE).round();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"{high}\" viewBox=\"0 0 800 {high}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <style>text {{ fill: #24292f }} .line {{ stroke: #24292f }} .other {{ fill: #8c959f }} .ours {{ fill: #1f6f8b }}\n\
         @media (prefers-color-scheme: dark) {{ text {{ fill: #d0d7de }} .line {{ stroke: #d0d7de }} .ours {{ fill: #4fa3c1 }} }}</style>\n\
         <text x=\"10\" y=\"18\" font-size=\"14\">Speed from Python, as a share of the machine's memory speed: longer is better</text>\n\
         <text x=\"10\" y=\"36\" font-size=\"11\">one run, two threads, {}; the line is each operand read once and the result written once</text>\n",
        escaped(machine)
    );
    for (n, (words, bars)) in shown.iter().enumerate() {
        let top = 52 + n * STEP;
        let words = escaped(words);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{words}</text>",
            LEFT - 10,
            top + 24
        );
        for (k, line) in bars.iter().enumerate() {
            let (y, share) = (top + k * 14, line.share().unwrap_or(0.0));
            let (class, name) = match whose(&line.engine) {
                Whose::Ours => ("ours", "simulcast"),
                _ => ("other", line.engine.as_str()),
            };
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{}\" height=\"12\"/>\
                 <text x=\"{}\" y=\"{}\" font-size=\"10\">{} {}</text>",
                at(share) - LEFT as f64,
                at(share) + 5.0,
                y + 10,
                escaped(name),
                time(line.median)
            );
        }
    }
    let bound = at(1.0);
    let _ = writeln!(
        svg,
        "<line class=\"line\" x1=\"{bound}\" y1=\"44\" x2=\"{bound}\" y2=\"{high}\" stroke-dasharray=\"3 3\"/>"
    );
    svg + "</svg>\n"
}

/// Ours, the best peer, and NumPy where that is not the best; nothing without ours and a peer.
fn of_chart(row: &Row) -> Option<Vec<&Line>> {
    let (ours, best) = (row.best(Whose::Ours, PYTHON)?, row.best(Whose::Peer, PYTHON)?);
    let numpy = row.lines.iter().find(|line| line.engine == "numpy");
    let numpy = numpy.filter(|line| line.engine != best.engine);
    Some([Some(ours), Some(best), numpy].into_iter().flatten().collect())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let line = |engine: &str, outside, best| Line {
            case: "row".into(),
            engine: engine.into(),
            outside,
            element: "f32".into(),
            shapes: Vec::new(),
            threads: 1,
            best,
            median: best,
            floor: Some(if outside { 0.7e-3 } else { 1e-3 }),
            share: outside.then_some(0.7e-3 / best),
            bytes: 1,
            cores: Some(1.96),
            strategy: (engine == "program").then(|| "contiguous".into()),
            machine: "this".into(),
        };
        let lines = vec![
            line("floor", false, 1e-3),
            line("floor-huge", false, 0.7e-3),
            line("ours-1", false, 4e-3),
            line("program", false, 2e-3),
            line("candle", false, 3e-3),
            line("hand", false, 5e-3),
            line("simulcast-python", true, 3.5e-3),
            line("a<b", true, 8e-3),
            line("numpy", true, 7e-3),
        ];
        Row { case: "row".into(), chart: Some("x + <row>".into()), lines }
    }

    #[test]
    fn the_table_takes_the_best_of_ours_and_of_the_peers() {
        let text = table(&[row()], "this machine");
        let expected = "| row | 1 B | 1.00 ms | program 2.00 ms | 50% | candle 3.00 ms | 1.50x | 5.00 ms \
                        | 700.0 us | simulcast-python 3.50 ms | 20% | numpy 7.00 ms | 2.00x | 2.0 | contiguous |\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn the_chart_shows_ours_the_best_peer_and_numpy() {
        let mut slow = row();
        slow.lines.push(Line { engine: "torch".into(), ..slow.lines[7].clone() });
        slow.lines.last_mut().unwrap().median = 6e-3;
        let svg = chart(&[slow], "a & b");
        assert_eq!(svg.matches("<rect class=").count(), 3);
        for bar in ["simulcast 3.50 ms", "torch 6.00 ms", "numpy 7.00 ms", "x + &lt;row&gt;"] {
            assert!(svg.contains(bar), "{bar}");
        }
        let unnamed = Row { chart: None, ..row() };
        assert!(!chart(&[unnamed], "").contains("<rect"));
        let mut alone = row();
        alone.lines.retain(|line| whose(&line.engine) != Whose::Peer);
        assert!(!chart(&[alone], "").contains("<rect"));
    }

    #[test]
    fn the_plot_shows_ours_and_the_best_peers() {
        let svg = plot(&[row()], "a & b");
        assert_eq!(svg.matches("<rect x=").count(), 4);
        for bar in ["program 50%", "simulcast-python 20%", "candle 33%", "numpy 10%"] {
            assert!(svg.contains(bar), "{bar}");
        }
        assert!(svg.contains("a &amp; b") && svg.ends_with("</svg>\n"));
    }
}
