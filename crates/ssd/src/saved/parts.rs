//! What of a drive is saved, part by part, under the names and in the order that files have.

use crate::cache::Cache;
use crate::clock::Clock;
use crate::collector::Collector;
use crate::device::SimulatedSsd;
use crate::flash::Medium;
use crate::host::Host;
use crate::state::{Carried, Carrier, Layout, State, rests};
use crate::translation::Translation;

/// Says which place in the drive each name of the saved form stands for, in the order of the form.
macro_rules! saved_as {
    ($($name:literal = $($place:ident).+,)*) => {
        fn layout(layout: &mut Layout) {
            layout.word("SimulatedSsd");
            layout.word("{");
            $(layout.field($name, |drive: &mut Self| &mut drive.$($place).+);)*
            layout.word("}");
        }

        fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
            self.expect_rest()?;
            $(State::carry(&mut self.$($place).+, carrier).map_err(|error| error.inside($name))?;)*
            Ok(())
        }
    };
}

impl State for SimulatedSsd {
    saved_as! {
        "now_ns" = clock.now_ns,
        "events" = clock.events,
        "host" = host.interface,
        "queues" = host.queues,
        "dram" = cache.dram,
        "write_cache" = cache.write,
        "read_cache" = cache.read,
        "ahead" = cache.ahead,
        "buffer" = cache.buffer,
        "collectors" = collector.units,
        "emptied_unasked" = collector.idle_collections,
        "read_only" = collector.read_only,
        "end_of_life" = collector.end_of_life,
        "in_place_wear" = collector.in_place_wear,
        "ftl" = ftl.pages,
        "folding" = collector.folding,
        "slc_counters" = collector.slc_counters,
        "sectors" = ftl.sectors,
        "translator" = ftl.translator,
        "blocks" = ftl.kind,
        "flash" = flash.array,
        "reduction" = ftl.reduction,
        "counters" = host.counters,
        "stage_times" = host.stage_times,
        "flash_counters" = flash.counters,
    }
}

impl SimulatedSsd {
    /// Checks that nothing is left of what is not saved. Every field of every part is named here, or this does not
    /// compile: a new one is saved above, is nothing at rest, or follows from the description.
    fn expect_rest(&self) -> Carried {
        let Self { config: _, page: _, seed: _, clock, host, cache, collector, ftl, flash, power: _ } = self;
        let Clock { now_ns: _, events: _ } = clock;
        let Host {
            info: _,
            page: _,
            data_transfer: _,
            in_logical_block: _,
            interface: _,
            queues: _,
            active,
            in_drive,
            in_drive_max: _,
            awaiting_buffer,
            awaiting_buffer_max: _,
            completed,
            completions,
            outstanding,
            hints: _,
            link,
            counters: _,
            stage_times: _,
        } = host;
        let Cache {
            dram: _,
            write: _,
            read: _,
            ahead: _,
            buffer: _,
            is_passed_by_reads: _,
            transfer_unit: _,
            logical_pages: _,
            page_bytes: _,
        } = cache;
        let Collector {
            rules: _,
            units: _,
            held,
            idle_collections: _,
            waiting_for_credit,
            folding: _,
            slc_counters: _,
            read_only: _,
            end_of_life: _,
            in_place_wear: _,
            bytes_of_read: _,
        } = collector;
        let Translation { pages: _, kind: _, sectors: _, translator: _, reduction: _, steps: _ } = ftl;
        let Medium { array: _, payload: _, counters: _, row_reads: _, recent_reads: _ } = flash;
        rests(active, "active")?;
        rests(in_drive, "in_drive")?;
        rests(awaiting_buffer, "awaiting_buffer")?;
        rests(outstanding, "outstanding")?;
        rests(completed, "completed")?;
        rests(completions, "answered")?;
        rests(held, "held")?;
        rests(waiting_for_credit, "waiting_for_credit")?;
        rests(link, "link")
    }
}
