//! The process that carries what goes between the sites of a local cluster, as the cluster outlives
//! the command that has started it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, bail};
use muesli_workloads::geography::Geography;
use rustix::process::{Pid, Signal, kill_process};

use super::process_end::wait_until_over;
use super::{LOOK_EVERY, LinkModel, LinkPlan, PATIENCE};

/// The command that carries, hidden from its users.
pub const COMMAND: &str = "carry";
/// What carrying prints once all links are there.
const READY: &str = "ready";

/// The links of the cluster in a folder, which holds what is known of them.
#[derive(Clone, Debug)]
pub struct LinkProcess {
    dir: PathBuf,
}

impl LinkProcess {
    /// The links of the cluster in a folder, if it has some.
    pub fn of(dir: &Path) -> Option<LinkProcess> {
        let links = LinkProcess { dir: dir.to_owned() };
        links.file("links").exists().then_some(links)
    }

    /// New links between servers at these addresses; they are not carried yet.
    ///
    /// # Errors
    /// There are fewer servers than sites, or the folder cannot be written to.
    pub fn lay_out(
        dir: &Path,
        addresses: &[String],
        geography: &Geography,
    ) -> anyhow::Result<(LinkProcess, LinkPlan)> {
        let plan = LinkPlan::between(addresses, LinkModel::Sites(geography.clone()), "127.0.0.1")?;
        let links = LinkProcess { dir: dir.to_owned() };
        fs::write(links.file("geography"), geography.lines())?;
        fs::write(links.file("links"), plan.lines())?;
        Ok((links, plan))
    }

    /// What a cluster in this folder had before.
    pub fn forget(dir: &Path) {
        for name in ["links", "geography"] {
            let _ = fs::remove_file(dir.join(name)); // There may have been none.
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The sites.
    ///
    /// # Errors
    /// The file is not there any more.
    pub fn geography(&self) -> anyhow::Result<Geography> {
        let text = fs::read_to_string(self.file("geography")).context("cannot read the sites")?;
        Ok(Geography::parse(&text)?)
    }

    /// Starts to carry, if nobody does, and waits until all links are there.
    ///
    /// # Errors
    /// It cannot be started, or does not come up.
    pub fn start(&self) -> anyhow::Result<()> {
        if self.process().is_some() {
            return Ok(());
        }
        let output = fs::File::create(self.file("links-output"))?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.arg("cluster").arg("--dir").arg(&self.dir).arg(COMMAND);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().context("cannot start the links")?;
        fs::write(self.file("links-pid"), child.id().to_string())?;
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let output = fs::read_to_string(self.file("links-output")).unwrap_or_default();
            if output.lines().any(|line| line == READY) {
                break;
            }
            if child.try_wait()?.is_some() || std::time::Instant::now() > deadline {
                bail!("the links between sites do not come up: {}", output.trim());
            }
            thread::sleep(LOOK_EVERY);
        }
        // Its end is to be noticed while this process runs, or its number would stay taken.
        thread::spawn(move || child.wait());
        Ok(())
    }

    /// The process that carries, if it runs.
    fn process(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.file("links-pid")).ok()?;
        let number: i32 = text.trim().parse().ok()?;
        let command = fs::read(format!("/proc/{number}/cmdline")).ok()?;
        let parts: Vec<_> = command.split(|byte| *byte == 0).collect();
        let is = |wanted: &[u8]| parts.contains(&wanted);
        let is_it = is(COMMAND.as_bytes()) && is(self.dir.as_os_str().as_encoded_bytes());
        if is_it { Pid::from_raw(number) } else { None }
    }

    /// Ends it, if it runs.
    ///
    /// # Errors
    /// It cannot be ended.
    pub fn stop(&self) -> anyhow::Result<()> {
        let Some(process) = self.process() else { return Ok(()) };
        kill_process(process, Signal::TERM).context("cannot end the links between sites")?;
        wait_until_over(process)
    }

    /// Carries, until the cluster's folder is gone, or a signal ends it.
    ///
    /// # Errors
    /// There are no links, or their ports are taken.
    pub fn carry(dir: &Path, addresses: &[String]) -> anyhow::Result<()> {
        let Some(links) = LinkProcess::of(dir) else {
            bail!("the cluster in {} is at no sites", dir.display());
        };
        let text = fs::read_to_string(links.file("links"))?;
        let plan = LinkPlan::read(&text, addresses, LinkModel::Sites(links.geography()?))?;
        plan.carry()?;
        println!("{READY}");
        while links.file("links").exists() {
            thread::sleep(PATIENCE);
        }
        Ok(())
    }
}
