//! `flashwise trace tpcc`.

use std::io::Write;

use flashwise_report::render_trace_tpcc;
use flashwise_report::trace::{TraceConversion, TraceTpcc};
use flashwise_trace::{Conversion, TraceWriter};
use flashwise_tune::sqlite::{TpccWorkload, tpcc};
use flashwise_tune::{DEFAULT_TARGET, Target};

use crate::arguments::TpccArguments;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::progress::Bar;
use crate::traces::{self, written_format};

/// Runs TPC-C and writes its requests.
pub fn run(options: &TpccArguments, output: &Output) -> Result<(), Failure> {
    let path = &options.output_file;
    let format = written_format(path, options.to)?;
    files::check_new(path)?;
    let &TpccArguments { warehouses, transactions, scale, page_cache, seed, .. } = options;
    let workload = TpccWorkload { warehouses, transactions, scale, page_cache };
    let run = tpcc(&Target::parse(DEFAULT_TARGET)?, &workload, seed, &mut Bar::new())?;
    let name = path.display().to_string();
    let work = |out: &mut (dyn Write + Send)| -> Result<Conversion, Failure> {
        let mut writer = TraceWriter::new(format, out, &name)?;
        run.trace.records.iter().try_for_each(|&record| writer.write(&record.into()))?;
        let (written, losses) = writer.finish()?;
        Ok(Conversion { written, losses, early: 0 })
    };
    let Some(conversion) = traces::write(path, *output, work)? else { return Ok(()) };
    let document = TraceTpcc::new(TraceConversion::new(None, name.clone(), format, conversion), run);
    output.print(&document, |style| render_trace_tpcc(&document, style))
}
