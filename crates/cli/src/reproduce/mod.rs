//! `muesli reproduce`: a paper's figure in the simulator, beside what the paper says.

mod alone;
mod canvas;
mod figure;
mod figures;
mod files;
mod judge;
mod plot;
mod point;
mod points;
mod report;
mod seed_points;
mod summary;

use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::bail;
use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli_commands::CommandPlan;
use muesli_registry::{NoProtocol, canonical_name, names as protocol_names};
use muesli_workloads::available;

use crate::bench::commands::NAME as NAME_OF_COMMANDS;
use crate::names::{self, check_parameters};
use figure::Figure;
use files::write_files;
use points::Course;
use report::tell;
use seed_points::all_points;

#[derive(Args, Clone, Debug)]
struct ReproduceOptions {
    /// `list`, or what to reproduce; several with commas between, or `all`
    #[arg(value_name = "FIGURES", value_delimiter = ',', required = true,
        value_parser = figure_names(), hide_possible_values = true)]
    figures: Vec<String>,
    /// Fewer numbers of nodes, and shorter runs: a minute or two each on two cores
    #[arg(long)]
    quick: bool,
    /// The first seed, where chance comes from
    #[arg(long, value_name = "X", default_value_t = 1)]
    seed: u64,
    /// How many seeds, each a run of its own: medians are shown, and from where to where they lie
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Another value of a parameter of the workload, to see what it changes; several times for
    /// several
    #[arg(long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// Another number of clients a node
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clients: Option<u32>,
    /// Other values of the figure's axis (nodes, clients, shares), with commas between
    #[arg(long = "at", value_name = "X", value_delimiter = ',')]
    xs: Vec<f64>,
    /// Other protocols in place of those of the figure's lines, in their order, with commas between
    #[arg(long, value_name = "NAMES", value_delimiter = ',',
        value_parser = names::protocols(), hide_possible_values = true)]
    protocols: Vec<String>,
    /// Another number of replicas
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16))]
    replicas: Option<u16>,
    /// A change of the machine, to see what it decides (pauses=true, model=NAME, lock-wait-ms=N,
    /// message-us=N, read-us=N, validate-us=N, tail-us=N, packet-us=N, patience=N, rack-nodes=N,
    /// rack-packets=N, rack-mb=N, cores=N, core-us=N); several times for several
    #[arg(long = "machine", value_name = "NAME=VALUE")]
    machine: Vec<String>,
    /// The folder for tables and plots
    #[arg(long, value_name = "DIR", default_value = "reproduced")]
    out: PathBuf,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("reproduce")
        .about("Run a paper's figure in the simulator and set it beside what the paper says")
        .after_help(
            "`muesli reproduce list` says what there is. Each figure is written to the folder as \
             a table (NAME.csv) and a plot (NAME.svg, NAME.png). Runs take place in virtual time \
             on models of the papers' clusters; docs/inside/reproduce.md says what they stand on. \
             Exit status: 0 all targets are met, 1 some are not, or a check of a run does not \
             hold.",
        );
    ReproduceOptions::augment_args(command)
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = ReproduceOptions::from_arg_matches(matches)?;
    if options.figures == ["list"] {
        list();
        return Ok(0);
    }
    let mut fine = true;
    for figure in chosen(&options.figures)? {
        for workload in figure.workloads() {
            check_given(workload, &options.parameters)?;
        }
        let course = options.course()?;
        let by_seed = points::run(figure, &course)?;
        let (judged, all_points) = (judge::judge(figure, &by_seed), all_points(&by_seed));
        write_files(figure, (&by_seed, &all_points, course.seed), &judged, &options.out)?;
        let given = options.given(figure);
        if !given.is_empty() {
            let _ = writeln!(stdout(), "\n  given: {}", given.join(" "));
        }
        fine &= tell(figure, (&all_points, &course), &judged, &options.out);
    }
    Ok(u8::from(!fine))
}

/// Looks whether a figure's workload has these parameters.
fn check_given(workload: &str, parameters: &[String]) -> anyhow::Result<()> {
    if workload == NAME_OF_COMMANDS {
        let mut plan = CommandPlan::default();
        return Ok(parameters.iter().try_for_each(|given| plan.change(given))?);
    }
    check_parameters(available::find(workload)?, parameters)
}

impl ReproduceOptions {
    /// What is not as the figure has it, as it is told with the table, where lines keep their names
    /// under other protocols.
    fn given(&self, figure: &Figure) -> Vec<String> {
        let lines = figure.lines.iter().zip(&self.protocols);
        let protocols = lines.map(|(line, protocol)| format!("{}={protocol}", line.name));
        let replicas = self.replicas.map(|replicas| format!("replicas={replicas}"));
        let all = self.parameters.iter().chain(&self.machine).cloned();
        all.chain(protocols).chain(replicas).collect()
    }

    fn course(&self) -> Result<Course, NoProtocol> {
        let protocol = |name: &String| {
            let found = protocol_names().into_iter().find(|known| *known == canonical_name(name));
            found.ok_or_else(|| NoProtocol::unknown(name))
        };
        Ok(Course {
            quick: self.quick,
            seed: self.seed,
            seeds: self.seeds,
            parameters: self.parameters.clone(),
            clients_a_node: self.clients,
            xs: self.xs.clone(),
            protocols: self.protocols.iter().map(protocol).collect::<Result<_, _>>()?,
            replicas: self.replicas.map(usize::from),
            machine: self.machine.clone(),
        })
    }
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Figure>> {
    if names == ["all"] {
        return Ok(figures::all().collect());
    }
    let mut all = Vec::new();
    for name in names {
        let group = figures::group(name);
        let chosen: Vec<_> = figures::all()
            .filter(|figure| figure.name == name || group.contains(&figure.name))
            .collect();
        if chosen.is_empty() {
            let known: Vec<_> = figures::all().map(|figure| figure.name).collect();
            bail!("nothing to reproduce is called `{name}`; there are: {}", known.join(", "));
        }
        all.extend(chosen);
    }
    Ok(all)
}

/// What can be asked for.
fn figure_names() -> PossibleValuesParser {
    let names = figures::all().map(|figure| figure.name);
    let words = ["list", "all"].into_iter().chain(figures::GROUPS.iter().copied());
    PossibleValuesParser::new(words.chain(names))
}

/// What there is: of each figure what it shows, and where.
fn list() {
    // A reader that has gone away is no matter.
    let _ = write!(stdout(), "{}", figures::all().map(listed).collect::<String>());
}

/// Values of an axis; many that follow each other are told by the first and the last.
fn values(xs: &[f64]) -> String {
    let follow = xs.windows(2).all(|pair| pair[0] + 1.0 == pair[1]);
    match xs {
        [first, .., last] if follow && xs.len() > 10 => format!("{first} to {last}"),
        _ => xs.iter().map(f64::to_string).collect::<Vec<_>>().join(" "),
    }
}

fn listed(figure: &Figure) -> String {
    let Figure { name, about, axis, seconds: (full, quick), .. } = figure;
    let (all, few) = (values(figure.xs), values(figure.quick_xs));
    format!(
        "{name}\n  {about}\n  {}: {all}, {full} s each\n  quick: {few}, {quick} s each\n",
        axis.name
    )
}

#[cfg(test)]
mod tests {
    use super::figure::{self, ClaimTarget, Measure};
    use super::judge::JudgedClaim;
    use super::report::points_table;
    use super::*;

    #[test]
    fn every_figure_names_what_there_is() {
        for figure in figures::all() {
            let all = figure.xs.iter().flat_map(|x| figure.lines.iter().map(move |it| (x, it)));
            for (x, line) in all {
                let (setting, (of, _)) = (COURSE.setting(figure, line, *x), figure.at(*x));
                if of.workload == NAME_OF_COMMANDS {
                    let plan = alone::commands::plan(&setting, COURSE.commands(of, 1));
                    assert!(
                        plan.is_ok_and(|it| it.check().is_ok()),
                        "{}: {setting:?}",
                        figure.name
                    );
                    continue;
                }
                let workload = available::find(of.workload).unwrap();
                let clients = of.clients_a_node * setting.nodes as u32;
                let built = workload.build(&setting.parameters, setting.clients.unwrap_or(clients));
                assert!(built.is_ok(), "{}: {:?}", figure.name, setting.parameters);
                assert!(protocol_names().contains(&line.protocol), "{}", figure.name);
            }
            assert!(figure.quick_xs.iter().all(|x| figure.xs.contains(x)), "{}", figure.name);
            let cases = figure.cases.len() as f64;
            assert!(cases == 0.0 || figure.xs.iter().all(|x| *x <= cases), "{}", figure.name);
            let lines = figure.lines.iter().map(|line| line.name);
            let named: Vec<_> = lines.chain(figure.models.iter().map(|it| it.name)).collect();
            for claim in figure.claims {
                let text = format!("{:?}", claim.measure);
                assert!(named.iter().any(|name| text.contains(name)), "{}: {text}", figure.name);
                if let Measure::At(_, _, x) | Measure::Over(_, _, _, x) = claim.measure {
                    assert!(figure.quick_xs.contains(&x), "{}: {text}", figure.name);
                }
                if let Measure::OverWithin(.., x, other) = claim.measure {
                    let are_shown = [x, other].iter().all(|x| figure.quick_xs.contains(x));
                    assert!(are_shown, "{}: {text}", figure.name);
                }
            }
        }
        for group in figures::GROUPS {
            assert!(chosen(&[(*group).to_owned()]).unwrap().len() > 1, "{group}");
        }
        let error = chosen(&["fig9".to_owned()]).err().unwrap().to_string();
        assert!(figures::all().all(|figure| error.contains(figure.name)), "{error}");
    }

    const SMALL: Figure = Figure {
        name: "small",
        about: "small",
        workload: "tree",
        parameters: &["objects=1{nodes}0", "initial=20", "walks=0"],
        chosen: "all of it",
        machine: muesli_workloads::machines::MachineModel::cloud_tm,
        clients_a_node: 2,
        xs: &[2.0, 3.0, 4.0],
        quick_xs: &[2.0, 3.0],
        lines: &[figure::protocol("score"), figure::protocol("bumper")],
        updates: 0.5,
        seconds: (1.0, 0.1),
        printed: &[figure::Printed {
            name: "paper: score",
            source: "nowhere, section 0",
            xs: &[2.0, 3.0],
            predicts: figure::PrintedAs::Share("score", |_| 0.5),
        }],
        claims: &[figure::PaperClaim {
            what: "speedup",
            measure: Measure::Speedup("bumper", "score"),
            paper: Some(1.0),
            target: Some(ClaimTarget::Least(0.1)),
        }],
        ..figure::NOTHING
    };

    const COURSE: Course = Course {
        quick: true,
        seed: 3,
        seeds: 1,
        parameters: Vec::new(),
        clients_a_node: None,
        xs: Vec::new(),
        protocols: Vec::new(),
        replicas: None,
        machine: Vec::new(),
    };

    #[test]
    fn what_is_asked_for_differently_is_run_differently() {
        let parameters = vec!["initial=10".to_owned(), "reads=100".to_owned()];
        let course = Course { parameters, clients_a_node: Some(1), xs: vec![2.0], ..COURSE };
        let points = points::run(&SMALL, &course).unwrap().remove(0);
        let seen: Vec<_> = points.iter().map(|point| (point.nodes, point.clients)).collect();
        assert_eq!(seen, [(2, 2), (2, 2)]);
        assert!(points.iter().all(|point| point.aborts == 0.0), "nobody updates: {points:?}");
        let course = Course {
            protocols: vec!["repeatable-read"],
            replicas: Some(1),
            xs: vec![2.0],
            ..COURSE
        };
        let alone = points::run(&SMALL, &course).unwrap();
        assert_eq!(alone[0][0].line, "score");
        assert_ne!(alone, points::run(&SMALL, &Course { xs: vec![2.0], ..COURSE }).unwrap());
        let free = Course { machine: vec!["validate-us=0".to_owned()], ..course.clone() };
        assert_ne!(points::run(&SMALL, &free).unwrap(), alone);
        let unknown = Course { machine: vec!["colour=red".to_owned()], ..COURSE };
        assert!(points::run(&SMALL, &unknown).is_err());
        let unknown = Course { parameters: vec!["colour=red".to_owned()], ..COURSE };
        assert!(points::run(&SMALL, &unknown).is_err());
        for x in [-1.0, 0.0, f64::NAN] {
            let course = Course { xs: vec![x], ..COURSE };
            let error = points::run(&SMALL, &course).unwrap_err().to_string();
            assert!(error.contains("nodes") && error.contains("1 to 1000"), "{error}");
        }
    }

    #[test]
    fn lines_under_other_protocols_are_told_with_their_names() {
        let line = "reproduce bumper-fig3 --protocols gmu --param reads=9 --replicas 1";
        let matches = command().get_matches_from(line.split(' '));
        let options = ReproduceOptions::from_arg_matches(&matches).unwrap();
        assert_eq!(options.given(&SMALL), ["reads=9", "score=gmu", "replicas=1"]);
    }

    #[test]
    fn distributed_transactions_modes_and_theories_are_told() {
        let figure = figures::all().find(|it| it.name == "granola-6.13").unwrap();
        let figure = Figure { seconds: (0.1, 0.02), ..*figure };
        let course = Course { xs: vec![10.0], ..COURSE };
        let by_seed = points::run(&figure, &course).unwrap();
        assert_eq!(by_seed[0].len(), 2);
        for point in &by_seed[0] {
            assert!(0.0 < point.locked && point.locked <= 1.0, "{point:?}");
            assert!(point.several_a_second == point.throughput && point.several_ms > 0.0);
            assert!(point.broken.is_empty(), "{point:?}");
        }
        let text = points_table(&figure, &all_points(&by_seed)).to_string();
        assert!(text.contains("by the model") && text.contains("locking mode"), "{text}");
        let judged = judge::judge(&figure, &by_seed);
        assert!(judged.iter().all(|it| it.ours.is_finite()), "{judged:?}");
        assert!(plot::draw(&figure, &all_points(&by_seed)).svg().contains("model, 64"));
    }

    #[test]
    fn a_figure_is_run_judged_and_written_and_comes_out_the_same_again() {
        let course = Course { seeds: 2, ..COURSE };
        let by_seed = points::run(&SMALL, &course).unwrap();
        assert_eq!(by_seed.len(), 2);
        assert_ne!(by_seed[0], by_seed[1], "each seed is a run of its own");
        for points in &by_seed {
            let order: Vec<_> = points.iter().map(|point| (point.nodes, point.line)).collect();
            assert_eq!(order, [(2, "score"), (2, "bumper"), (3, "score"), (3, "bumper")]);
            for point in points {
                assert!(point.throughput > 20.0 && point.broken.is_empty(), "{point:?}");
            }
        }
        assert_eq!(points::run(&SMALL, &course).unwrap(), by_seed);
        let second = Course { seed: 4, ..COURSE };
        assert_eq!(points::run(&SMALL, &second).unwrap(), by_seed[1..]);
        let (judged, all_points) = (judge::judge(&SMALL, &by_seed), all_points(&by_seed));
        assert_eq!(judged[0].met, Some(true), "{judged:?}");
        let (least, most) = judged[0].range;
        assert!(least < judged[0].ours && judged[0].ours < most, "{judged:?}");
        assert!(
            points_table(&SMALL, &all_points).to_string().contains(".."),
            "all_points are shown"
        );
        let out = tempfile::tempdir().unwrap();
        write_files(&SMALL, (&by_seed, &all_points, 3), &judged, out.path()).unwrap();
        let read = |name: &str| std::fs::read(out.path().join(name)).unwrap();
        let table = String::from_utf8(read("small.csv")).unwrap();
        assert_eq!(table.lines().count(), 1 + 2 * 4 + 1 + 1 + 1 + 1 + 1 + 2, "{table}");
        assert!(
            read("small.svg").starts_with(b"<svg") && read("small.png")[1..].starts_with(b"PNG")
        );
        assert!(tell(&SMALL, (&all_points, &course), &judged, out.path()));
        let missed = [JudgedClaim { met: Some(false), ..judged[0].clone() }];
        assert!(!tell(&SMALL, (&all_points, &course), &missed, out.path()));
    }

    #[test]
    fn figures_of_commands_alone_are_run_and_judged() {
        let all = figures::all().filter(|figure| figure.workload == NAME_OF_COMMANDS);
        let all: Vec<_> = all.collect();
        assert_eq!(all.len(), 9, "chapter 10");
        for figure in all {
            let nodes = figure.nodes.min(3);
            let small = Figure {
                nodes,
                quick_nodes: 0,
                seconds: (0.02, 0.01),
                warm_up: (0.0, 0.002),
                ..*figure
            };
            let course = Course { xs: vec![figure.quick_xs[0]], ..COURSE };
            let by_seed = points::run(&small, &course).unwrap();
            for point in &by_seed[0] {
                assert!(
                    point.throughput > 100.0 && point.p50_ms > 0.0,
                    "{}: {point:?}",
                    figure.name
                );
            }
            assert_eq!(points::run(&small, &course).unwrap(), by_seed, "{}", figure.name);
            let text = points_table(&small, &all_points(&by_seed)).to_string();
            assert!(text.contains("commands/s") && text.contains("stepping"), "{text}");
            assert_eq!(judge::judge(&small, &by_seed).len(), figure.claims.len());
        }
    }

    #[test]
    fn how_quick_and_full_runs_differ_is_told() {
        let output_text = Course { seeds: 3, ..COURSE }.described(&SMALL);
        let quick = "quick: nodes 2 3, 0.1 s each, seeds 3 to 5; ";
        assert_eq!(output_text, format!("{quick}full runs: nodes 2 3 4, 1 s each"));
        let output_text = Course { quick: false, xs: vec![9.0], ..COURSE }.described(&SMALL);
        assert_eq!(
            output_text,
            "full: nodes 9, 1 s each, seed 3; quick runs: nodes 2 3, 0.1 s each"
        );
    }

    #[test]
    fn what_papers_print_is_drawn_and_has_a_source() {
        for figure in figures::all() {
            for printed in figure.printed {
                assert!(printed.source.contains("section"), "{}", figure.name);
                assert!(!printed.xs.is_empty(), "{}", figure.name);
                if let figure::PrintedAs::Share(line, _) = printed.predicts {
                    assert!(figure.lines.iter().any(|it| it.name == line), "{}", figure.name);
                    assert!(printed.xs.iter().all(|x| figure.xs.contains(x)), "{}", figure.name);
                }
            }
        }
        let by_seed = points::run(&SMALL, &COURSE).unwrap();
        let all_points = all_points(&by_seed);
        let svg = plot::draw(&SMALL, &all_points).svg();
        assert!(svg.contains("stroke-dasharray") && svg.contains("paper: score"), "{svg}");
        let places = SMALL.printed[0].places(&SMALL, &by_seed[0]);
        let ours = by_seed[0][0].throughput;
        assert_eq!(places[..1], [(2.0, 0.5 * ours)]);
    }
}
