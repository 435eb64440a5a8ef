//! The backends of this project.

use clap::builder::PossibleValuesParser;

use crate::services::Needs;

/// A backend that can be certified, and benchmarked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backend {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// Its package, whose test target `contract` runs the suite.
    pub(crate) package: &'static str,
    /// Its benchmark target, if it has one.
    pub(crate) bench: Option<&'static str>,
    /// The server behind it.
    pub(crate) needs: Needs,
}

/// All of them.
pub(crate) const BACKENDS: &[Backend] = &[
    Backend {
        name: "ets-like",
        package: "rheo-ets-like",
        bench: Some("memory"),
        needs: Needs::Nothing,
    },
    Backend {
        name: "double",
        package: "rheo-double",
        bench: None,
        needs: Needs::Nothing,
    },
    Backend {
        name: "postgres",
        package: "rheo-postgres",
        bench: Some("postgres"),
        needs: Needs::Postgres,
    },
    Backend {
        name: "mongo",
        package: "rheo-mongo",
        bench: Some("mongo"),
        needs: Needs::Mongo,
    },
];

impl Backend {
    /// Whether it needs one.
    pub(crate) fn has_server(&self) -> bool {
        self.needs != Needs::Nothing
    }
}

/// The backends of these names.
pub(crate) fn named(names: &[String]) -> Vec<Backend> {
    let chosen = |backend: &&Backend| {
        names
            .iter()
            .any(|name| [backend.name, backend.package].contains(&&**name))
    };
    BACKENDS.iter().filter(chosen).copied().collect()
}

/// Accepts the names and packages of the backends, and names them when another is given.
pub(crate) fn parser() -> PossibleValuesParser {
    parser_of(|_| true)
}

/// As [`parser`], for those with a server.
pub(crate) fn server_parser() -> PossibleValuesParser {
    parser_of(Backend::has_server)
}

fn parser_of(which: fn(&Backend) -> bool) -> PossibleValuesParser {
    let backends = BACKENDS.iter().filter(|backend| which(backend));
    PossibleValuesParser::new(backends.flat_map(|backend| {
        [
            clap::builder::PossibleValue::new(backend.name),
            clap::builder::PossibleValue::new(backend.package).hide(true),
        ]
    }))
}

/// As [`parser`], for those with a benchmark.
pub(crate) fn bench_parser() -> PossibleValuesParser {
    let with_bench = BACKENDS.iter().filter(|backend| backend.bench.is_some());
    PossibleValuesParser::new(with_bench.map(|backend| backend.name))
}
