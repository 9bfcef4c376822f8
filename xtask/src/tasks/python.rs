//! `cargo xtask python`: the wheel of the Python package, installed in a venv, checked and tested.

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::files;

use super::{Done, built, muesli, program, target};

/// What checks and tests the package, and what its optional parts use.
const TOOLS: [&str; 6] = [
    "maturin>=1.9,<2",
    "pytest>=8,<10",
    "mypy>=1.18,<3",
    "msgpack>=1,<2",
    "pandas>=2,<4",
    "pandas-stubs>=2,<4",
];

/// How the package is built and with which server it is tested.
struct PythonOptions {
    /// With the server that the tests have built.
    built: bool,
    /// Optimized, and measured at the end.
    release: bool,
}

/// Builds, installs, checks and tests the package.
pub fn run(arguments: &[&str]) -> Done {
    let known = ["--built", "--release"];
    if let Some(unknown) = arguments.iter().find(|argument| !known.contains(argument)) {
        return Err(format!("{unknown}: the options of this task are {}", known.join(" and ")));
    }
    let has = |option| arguments.contains(&option);
    let options = PythonOptions { built: has("--built"), release: has("--release") };
    let venv = tools()?;
    lint()?;
    install(&venv, &options)?;
    test(&venv, &options)?;
    match options.release {
        true => super::run(python(&venv).arg("bench.py")),
        false => Ok(()),
    }
}

/// The folder of what is made for the package.
fn folder() -> PathBuf {
    let target = files::root().join(target());
    target.join("python")
}

/// A venv with all tools; its folder.
fn tools() -> Result<PathBuf, String> {
    let venv = folder().join("venv");
    if !venv.join("bin").join("python").exists() {
        super::run(program("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    super::run(python(&venv).args(pip).args(TOOLS))?;
    Ok(venv)
}

/// A command of the venv's Python, in the package's folder.
fn python(venv: &Path) -> Command {
    let mut command = Command::new(venv.join("bin").join("python"));
    command.current_dir(files::root().join("python"));
    command
}

/// Formatting and lints of the native part.
fn lint() -> Done {
    let manifest = ["--manifest-path", "python/Cargo.toml"];
    super::run(program("cargo").arg("fmt").args(manifest).arg("--check"))?;
    let mut clippy = program("cargo");
    clippy.arg("clippy").args(manifest).args(["--locked", "--target-dir"]).arg(folder());
    super::run(clippy.args(["--", "-D", "warnings"]))
}

/// Builds the wheel and installs it.
fn install(venv: &Path, options: &PythonOptions) -> Done {
    let wheels = folder().join("wheels");
    if wheels.exists() {
        let removed = std::fs::remove_dir_all(&wheels);
        removed.map_err(|error| format!("{}: {error}", wheels.display()))?;
    }
    let mut build = python(venv);
    build.env("CARGO_TARGET_DIR", folder());
    build.args(["-m", "maturin", "build", "--locked", "--quiet", "--out"]).arg(&wheels);
    super::run(match options.release {
        true => build.arg("--release"),
        false => build.args(["--profile", "dev"]),
    })?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let mut install = python(venv);
    install.args(pip).args(["--force-reinstall", "--no-index", "--find-links"]);
    super::run(install.arg(&wheels).arg("muesli"))
}

/// The types of the package, and its tests.
fn test(venv: &Path, options: &PythonOptions) -> Done {
    super::run(python(venv).args(["-m", "mypy"]))?;
    let config = ["--mypy-config-file", "pyproject.toml"];
    super::run(python(venv).args(["-m", "mypy.stubtest", "muesli._native"]).args(config))?;
    let server = if options.built { built() } else { muesli()? };
    let server = files::root().join(server);
    super::run(python(venv).args(["-m", "pytest"]).env("MUESLI", server))
}
