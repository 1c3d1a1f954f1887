//! The report: a table in Markdown and a plot in SVG, one row a case, made of the measurements.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// One measurement: a line of `results.jsonl`.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Line {
    pub(crate) case: String,
    pub(crate) engine: String,
    #[serde(rename = "type")]
    pub(crate) element: String,
    pub(crate) shapes: Vec<Vec<usize>>,
    pub(crate) threads: usize,
    /// Seconds a call, of the quickest and of half of the calls.
    pub(crate) best: f64,
    pub(crate) median: f64,
    /// The floor's seconds at that time, where the case has one.
    pub(crate) floor: Option<f64>,
    /// What must move.
    pub(crate) bytes: usize,
    pub(crate) machine: String,
}

impl Line {
    /// The share of the floor that it reaches.
    fn share(&self) -> Option<f64> {
        Some(self.floor? / self.best)
    }

    /// How many times better than the other one it is: by what they make of the machine at their
    /// time, or by time where there is no floor.
    fn against(&self, other: &Self) -> f64 {
        let shares = self.share().zip(other.share()).map(|(own, other)| own / other);
        shares.unwrap_or(other.best / self.best)
    }
}

/// A case with its measurements.
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) lines: Vec<Line>,
}

/// Whose measurement it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Floor,
    Ours,
    OursInPython,
    ByHand,
    Peer,
}

fn whose(engine: &str) -> Whose {
    match engine {
        "floor" => Whose::Floor,
        "hand" => Whose::ByHand,
        "simulcast-python" | "simulcast-session" => Whose::OursInPython,
        _ if ["ours", "program", "operator"].iter().any(|own| engine.starts_with(own)) => {
            Whose::Ours
        }
        _ => Whose::Peer,
    }
}

impl Row {
    fn best(&self, of: Whose) -> Option<&Line> {
        let lines = self.lines.iter().filter(|line| whose(&line.engine) == of);
        lines.min_by(|a, b| a.best.total_cmp(&b.best))
    }

    /// The best two peers.
    fn peers(&self) -> Vec<&Line> {
        let is_peer = |line: &&Line| whose(&line.engine) == Whose::Peer;
        let mut peers: Vec<&Line> = self.lines.iter().filter(is_peer).collect();
        peers.sort_by(|a, b| a.best.total_cmp(&b.best));
        peers.truncate(2);
        peers
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

/// The table: our share of the floor, the best peer, and how many times faster than it we are.
pub(crate) fn table(rows: &[Row], machine: &str) -> String {
    let mut text = format!(
        "Best of each engine in one run on {machine}. The floor is what must move, moved as fast as the\n\
         machine moves it, measured anew beside each process: what is set against a peer is shares of it.\n\n\
         | case | floor | ours | of the floor | ours from Python | best peer | of the floor | ours against it | by hand, one thread |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let shown = |whose| row.best(whose).map_or("-".into(), |line| time(line.best));
        let named = |line: Option<&Line>| {
            line.map_or("-".into(), |line| format!("{} {}", line.engine, time(line.best)))
        };
        let share = |line: Option<&Line>| {
            let share = line.and_then(Line::share);
            share.map_or("-".into(), |share| format!("{:.0}%", share * 100.0))
        };
        let (ours, peer) = (row.best(Whose::Ours), row.best(Whose::Peer));
        let against = ours.zip(peer).map(|(ours, peer)| format!("{:.2}x", ours.against(peer)));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.case,
            shown(Whose::Floor),
            named(ours),
            share(ours),
            shown(Whose::OursInPython),
            named(peer),
            share(peer),
            against.unwrap_or_else(|| "-".into()),
            shown(Whose::ByHand),
        );
    }
    text
}

const LEFT: usize = 130;
const WIDE: usize = 520;
const BAR: usize = 9;
const STEP: usize = 40;

/// The plot: three bars a case, ours and the two best peers, as shares of the floor.
pub(crate) fn plot(rows: &[Row], machine: &str) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.best(Whose::Floor).is_some()).collect();
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
        let bars = row.best(Whose::Ours).into_iter().chain(row.peers());
        for (k, (line, fill)) in bars.zip(["#1f6f8b", "#c9a26b", "#dcc7a1"]).enumerate() {
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let line = |engine: &str, best| Line {
            case: "row".into(),
            engine: engine.into(),
            element: "f32".into(),
            shapes: Vec::new(),
            threads: 1,
            best,
            median: best,
            floor: Some(1e-3),
            bytes: 1,
            machine: "this".into(),
        };
        let lines = vec![
            line("floor", 1e-3),
            line("ours-1", 4e-3),
            line("program", 2e-3),
            line("simulcast-python", 3.5e-3),
            line("a<b", 8e-3),
            line("candle", 3e-3),
            line("numpy", 6e-3),
            line("hand", 5e-3),
        ];
        Row { case: "row".into(), lines }
    }

    #[test]
    fn the_table_takes_the_best_of_ours_and_of_the_peers() {
        let text = table(&[row()], "this machine");
        let expected = "| row | 1.00 ms | program 2.00 ms | 50% | 3.50 ms | candle 3.00 ms | 33% | 1.50x | 5.00 ms |\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn the_plot_shows_ours_and_two_peers() {
        let svg = plot(&[row()], "a & b");
        assert_eq!(svg.matches("<rect x=").count(), 3);
        assert!(
            svg.contains("program 50%") && svg.contains("candle 33%") && svg.contains("numpy 17%")
        );
        assert!(svg.contains("a &amp; b") && svg.ends_with("</svg>\n"));
    }
}
