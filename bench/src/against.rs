//! Two revisions of the engine in turns: the same benchmark, compiled with each, in two processes of which one works at a
//! time.
//!
//! Every engine of a case takes short turns in both, old and new, new and old, so that a slower moment of the machine
//! meets both alike. A ratio is taken of each pair of neighbouring turns, old time over new time: above 1 the new one is
//! faster. The median of the pairs counts, and beside it stands their spread.
//!
//! A machine that others use too still favours one of them now and then, for all of a row's turns. So a verdict comes from
//! several runs: for each row the best of its ratios, and for all rows the geometric mean of their medians.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::asked::Worker;
use crate::report::time;
use simulcast_bench::case::Case;
use simulcast_bench::measure::median;
use simulcast_bench::rotation::in_cache;

/// Below this ratio a row counts as slower.
const ROW_LIMIT: f64 = 0.95;
/// Below this geometric mean all rows together count as slower.
const MEAN_LIMIT: f64 = 0.99;
/// The rows shown as the worst.
const WORST: usize = 10;

/// What is compared, and how long.
pub(crate) struct Schedule {
    /// The benchmark compiled with the old engine.
    pub(crate) old: PathBuf,
    /// The most pairs of turns of a row.
    pub(crate) rounds: usize,
    /// The seconds of a turn.
    pub(crate) seconds: f64,
}

/// The fewest pairs of turns of a row, and the spread of the median, relative to it, at which there are enough.
const FEWEST_ROUNDS: usize = 7;
const ENOUGH: f64 = 0.004;

/// A row of a comparison: an engine at a case. A line of the result file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Ratio {
    pub(crate) case: String,
    pub(crate) engine: String,
    /// Seconds a call: the medians of all turns.
    pub(crate) old: f64,
    pub(crate) new: f64,
    /// Old time over new time: the median of the pairs of turns.
    pub(crate) ratio: f64,
    /// Half of the distance between the quartiles of the pairs.
    pub(crate) spread: f64,
    pub(crate) rounds: usize,
}

impl Ratio {
    fn of(case: &str, engine: &str, pairs: &[(f64, f64)]) -> Self {
        let middle = |values: Vec<f64>| median(values).unwrap_or(f64::NAN);
        let mut ratios: Vec<f64> = pairs.iter().map(|(old, new)| old / new).collect();
        ratios.sort_by(f64::total_cmp);
        let quartile = |n: usize| ratios.get(ratios.len() * n / 4).copied().unwrap_or(f64::NAN);
        Self {
            case: case.into(),
            engine: engine.into(),
            old: middle(pairs.iter().map(|pair| pair.0).collect()),
            new: middle(pairs.iter().map(|pair| pair.1).collect()),
            ratio: middle(ratios.clone()),
            spread: (quartile(3) - quartile(1)) / 2.0,
            rounds: pairs.len(),
        }
    }

    /// How far the median may be off by chance alone, relative to it.
    fn doubt(&self) -> f64 {
        self.spread / self.ratio / (self.rounds as f64).sqrt()
    }
}

/// The two programs, copied: what a process takes for a call of 100 ns depends on where its code lies in memory, by up
/// to a third, and a file stays where it was first read. Each start takes the next copy.
struct Copies {
    folder: PathBuf,
    at: usize,
}

/// The copies of each program, and the starts of a row that is measured in the caches.
const STARTS: usize = 3;

impl Copies {
    fn new(old: &Path, new: &Path) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("simulcast-against-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let copies = Self { folder, at: 0 };
        for at in 0..STARTS {
            for (program, to) in [old, new].into_iter().zip(copies.programs(at)) {
                fs::copy(program, to).map_err(|e| format!("{}: {e}", program.display()))?;
            }
        }
        Ok(copies)
    }

    /// Of equal length: names come before the stack.
    fn programs(&self, at: usize) -> [PathBuf; 2] {
        ["old", "new"].map(|name| self.folder.join(format!("{name}{at}")))
    }

    fn start(&mut self) -> Result<Pair, String> {
        self.at = (self.at + 1) % STARTS;
        let [old, new] = self.programs(self.at);
        Ok(Pair { old: Worker::start(&old)?, new: Worker::start(&new)? })
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A process of each revision.
struct Pair {
    old: Worker,
    new: Worker,
}

/// What became of a row.
enum Outcome {
    Compared(Ratio),
    OnlyNew,
}

/// One run: every engine of every case.
pub(crate) fn run<'c>(
    cases: impl Iterator<Item = &'c Case>,
    engine: Option<&str>,
    schedule: &Schedule,
) -> Result<Vec<Ratio>, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut copies = Copies::new(&schedule.old, &own)?;
    let mut all = Vec::new();
    println!(
        "{:<14} {:<12} {:>11} {:>11} {:>7} {:>7}",
        "case", "engine", "old", "new", "ratio", "spread"
    );
    for case in cases {
        let names = copies.start()?.new.engines(case)?;
        for name in names.iter().filter(|name| engine.is_none_or(|wanted| *name == wanted)) {
            match compared(case, name, schedule, &mut copies)? {
                Outcome::Compared(row) => {
                    show(&row);
                    all.push(row);
                }
                Outcome::OnlyNew => {
                    println!("{:<14} {name:<12} only the new one has it", case.name);
                }
            }
        }
    }
    Ok(all)
}

/// The turns of one row.
fn compared(
    case: &Case,
    engine: &str,
    schedule: &Schedule,
    copies: &mut Copies,
) -> Result<Outcome, String> {
    // Large arrays take long to make, and their cases do not depend on where code lies.
    let starts = if in_cache(case) { STARTS } else { 1 };
    let (fewest, most) = (FEWEST_ROUNDS.div_ceil(starts), schedule.rounds.div_ceil(starts));
    let mut pairs = Vec::new();
    for _ in 0..starts {
        let Pair { mut old, mut new } = copies.start()?;
        let has = old.engines(case)?.iter().any(|one| one == engine);
        new.engines(case)?;
        if has {
            old.make(engine)?;
        }
        new.make(engine)?;
        if !new.done()? {
            return Err(format!("{}: {engine} cannot be made", case.name));
        }
        if !has || !old.done()? {
            return Ok(Outcome::OnlyNew);
        }
        // What is touched for the first time, and decided by trying, is over before it counts.
        old.turn(schedule.seconds)?;
        new.turn(schedule.seconds)?;
        let before = pairs.len();
        loop {
            if pairs.len() % 2 == 0 {
                let first = old.turn(schedule.seconds)?;
                pairs.push((first, new.turn(schedule.seconds)?));
            } else {
                let first = new.turn(schedule.seconds)?;
                pairs.push((old.turn(schedule.seconds)?, first));
            }
            let rounds = pairs.len() - before;
            let own = Ratio::of(&case.name, engine, &pairs[before..]);
            if rounds >= most || (rounds >= fewest && own.doubt() < ENOUGH) {
                break;
            }
        }
    }
    Ok(Outcome::Compared(Ratio::of(&case.name, engine, &pairs)))
}

fn show(row: &Ratio) {
    println!(
        "{:<14} {:<12} {:>11} {:>11} {:>7.3} {:>7.3}{}",
        row.case,
        row.engine,
        time(row.old),
        time(row.new),
        row.ratio,
        row.spread,
        if row.ratio < ROW_LIMIT { "  slower" } else { "" }
    );
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), one| (sum + one.ln(), count + 1));
    (sum / f64::from(count)).exp()
}

/// What one run comes to.
pub(crate) fn summary(rows: &[Ratio]) -> String {
    let mean = geometric_mean(rows.iter().map(|row| row.ratio));
    let mut worst: Vec<&Ratio> = rows.iter().collect();
    worst.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let mut text = format!("{} rows, geometric mean {mean:.3}; the worst:\n", rows.len());
    for row in worst.iter().take(WORST) {
        text += &format!(
            "  {:<14} {:<12} {:.3} (spread {:.3})\n",
            row.case, row.engine, row.ratio, row.spread
        );
    }
    text
}

/// What several runs come to.
#[derive(Debug, PartialEq)]
pub(crate) struct Verdict {
    /// Each row with its ratios, in the order of the first run.
    rows: Vec<(String, String, Vec<f64>)>,
    /// The geometric mean of the rows' medians.
    mean: f64,
}

impl Verdict {
    pub(crate) fn of(runs: &[Vec<Ratio>]) -> Self {
        let mut ratios: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
        let mut order = Vec::new();
        for row in runs.iter().flatten() {
            let key = (row.case.as_str(), row.engine.as_str());
            let known = ratios.entry(key).or_insert_with(|| {
                order.push(key);
                Vec::new()
            });
            known.push(row.ratio);
        }
        let mean = geometric_mean(ratios.values().filter_map(|all| median(all.clone())));
        let rows = order.into_iter().map(|key| {
            (key.0.to_owned(), key.1.to_owned(), ratios.remove(&key).unwrap_or_default())
        });
        Self { rows: rows.collect(), mean }
    }

    fn best(ratios: &[f64]) -> f64 {
        ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The rows whose best ratio is below the limit.
    fn slower(&self) -> usize {
        self.rows.iter().filter(|row| Self::best(&row.2) < ROW_LIMIT).count()
    }

    pub(crate) fn passes(&self) -> bool {
        self.slower() == 0 && self.mean >= MEAN_LIMIT
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("{:<14} {:<12} {:>6}  of\n", "case", "engine", "best");
        for (case, engine, ratios) in &self.rows {
            let best = Self::best(ratios);
            let all: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect();
            text += &format!(
                "{case:<14} {engine:<12} {best:>6.3}  {}{}\n",
                all.join(" "),
                if best < ROW_LIMIT { "  SLOWER" } else { "" }
            );
        }
        text += &format!(
            "{} rows, {} with a best ratio below {ROW_LIMIT}; geometric mean of the medians {:.3} \
             (at least {MEAN_LIMIT}): {}\n",
            self.rows.len(),
            self.slower(),
            self.mean,
            if self.passes() { "passed" } else { "NOT passed" }
        );
        text
    }
}

/// The rows of a result file.
pub(crate) fn read(file: &Path) -> Result<Vec<Ratio>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| failed(&error))).collect()
}

/// A run as a result file.
pub(crate) fn lines(rows: &[Ratio]) -> Result<String, String> {
    let lines = rows.iter().map(|row| serde_json::to_string(row).map(|line| line + "\n"));
    lines.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, ratio: f64) -> Ratio {
        let (old, new) = (ratio * 1e-3, 1e-3);
        Ratio { case: case.into(), engine: "ours".into(), old, new, ratio, spread: 0.0, rounds: 1 }
    }

    #[test]
    fn a_ratio_is_the_median_of_the_pairs_not_of_the_times() {
        // Both are twice as slow in the third round: the pairs do not notice.
        let row =
            Ratio::of("a", "ours", &[(1.0, 1.0), (1.2, 1.0), (2.2, 2.0), (1.1, 1.0), (2.2, 2.0)]);
        assert!((row.ratio - 1.1).abs() < 1e-9 && row.old == 1.2 && row.rounds == 5);
        // The quartiles are 1.1 and 1.1: one round apart does not widen the spread.
        assert!(row.spread < 1e-9);
    }

    #[test]
    fn a_row_passes_by_its_best_run_and_all_rows_by_their_medians() {
        let runs = |b: [f64; 3]| b.map(|b| vec![row("a", 1.0), row("b", b)]).to_vec();
        assert!(Verdict::of(&runs([0.9, 0.97, 1.0])).slower() == 0);
        // The median of b is 0.97, and the mean of both 0.985.
        assert!(!Verdict::of(&runs([0.9, 0.97, 1.0])).passes());
        assert!(Verdict::of(&runs([0.9, 0.99, 1.0])).passes());
        let slower = Verdict::of(&runs([0.9, 0.94, 0.8]));
        assert!(slower.slower() == 1 && !slower.passes() && slower.text().contains("SLOWER"));
    }

    #[test]
    fn a_result_file_is_read_as_it_was_written() {
        let rows = vec![row("a", 1.0), row("b", 0.5)];
        let file = std::env::temp_dir().join(format!("ratios-{}", std::process::id()));
        fs::write(&file, lines(&rows).expect("lines")).expect("a file");
        assert_eq!(read(&file), Ok(rows));
        let _ = fs::remove_file(file);
    }
}
