//! What a server answers about the partitions that transactions touch here. Each answer has a bound
//! of its own, whatever was sampled and however much the partitions hold.

use muesli_core::Rejection;
use muesli_core::judgement::ensure;
use muesli_core::recorder::accesses::AccessSampler;

use crate::dispatch::event_loop::Loop;
use crate::wire::control::Control;

impl Loop {
    /// Answers a probe that asks for samples, counters or sizes, and an administrator that changes
    /// the share that is sampled.
    pub(super) fn answer_about_accesses(
        &mut self,
        place: usize,
        control: &Control,
    ) -> Result<(), Rejection> {
        let answer = {
            let inner = &mut *self.loop_engine.inner.borrow_mut();
            if let Control::AskSizes(from) = control {
                Some(Control::Sizes(inner.machine.partition_sizes(*from)))
            } else {
                let environment = inner.machine.environment_mut();
                let at_ms = environment.now.as_millis();
                let sampler = environment.accesses.get_or_insert_default();
                from_sampler(sampler, control, at_ms)
            }
        };
        ensure(answer.is_some(), Rejection::Role)?;
        if let Some(answer) = answer {
            self.send_control(place, &answer);
        }
        Ok(())
    }
}

fn from_sampler(sampler: &mut AccessSampler, control: &Control, at_ms: u64) -> Option<Control> {
    match control {
        Control::AskAccesses(from) => Some(Control::Accesses(sampler.page(*from))),
        Control::AskLoads(from) => Some(Control::Loads(sampler.loads(*from, at_ms))),
        Control::SampleAccesses(one_in) => {
            sampler.set_one_in(*one_in);
            Some(Control::Loads(sampler.loads(0, at_ms)))
        }
        _ => None,
    }
}
