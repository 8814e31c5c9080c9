//! `export`: permits as a file on standard output.

use std::{
    io::{ErrorKind, Write},
    process::ExitCode,
};

use anyhow::{Result, ensure};
use clap::Args;
use futures_util::StreamExt;

use crate::{
    app::{App, Database},
    config::Config,
    domain::export::ExportFormat,
    files::export::export,
    store::lists::permits::PermitFilter,
};

/// The mark by which some programs know UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// csv, which `import` reads again; or json
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    format: ExportFormat,
    /// Put a byte order mark before csv, for programs that need one to know UTF-8
    #[arg(long)]
    bom: bool,
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let Arguments { format, bom } = arguments;
    ensure!(!bom || format == ExportFormat::Csv, "--bom is for csv");
    let app = App::open(config, database).await?;
    let today = app.moment(None).await?.today;
    let mut chunks = export(&database.direct_url, PermitFilter::default(), format, today).await?;
    let mut out = std::io::stdout().lock();
    let mut pieces = if bom { vec![BOM.to_vec()] } else { Vec::new() };
    loop {
        for piece in pieces.drain(..) {
            match out.write_all(&piece) {
                Ok(()) => {}
                // A reader that has seen enough, such as `head`.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                Err(error) => return Err(error.into()),
            }
        }
        match chunks.next().await {
            Some(piece) => pieces.push(piece?),
            None => break,
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
