//! `import`: permits from a file, all of its rows or none.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::Args;
use futures_util::StreamExt;
use uuid::Uuid;

use super::{print_json, say};
use crate::{
    app::{App, Database},
    config::Config,
    files::{
        ColumnChoice, DateFormat, ImportOptions, ImportRules, Input, OptionError, Phase, Progress, StatusChoice,
        export::rejected_rows, import,
    },
    store::changes::COMMAND,
};

#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one option of the command line")]
pub struct Arguments {
    /// The file: csv, tsv, xlsx or ods
    file: PathBuf,
    /// Take a field from the column with this header
    #[arg(long, value_name = "FIELD=COLUMN")]
    map: Vec<ColumnChoice>,
    /// Read a status word of the file as one of ours
    #[arg(long, value_name = "FROM=TO")]
    status: Vec<StatusChoice>,
    /// The type of every permit of the file
    #[arg(long, value_name = "TYPE")]
    permit_type: Option<String>,
    /// How dates are written, such as %d.%m.%Y
    #[arg(long, value_name = "FMT")]
    date_format: Option<DateFormat>,
    /// The sheet of a workbook that has several
    #[arg(long, value_name = "NAME")]
    sheet: Option<String>,
    /// Tell new permits what is due already, and confirm renewals
    #[arg(long)]
    catch_up: bool,
    /// Apply the rows that are right although others are not
    #[arg(long)]
    keep_good_rows: bool,
    /// Write the rejected rows to this file, each with what is wrong in a last column
    #[arg(long, value_name = "FILE")]
    errors: Option<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// The options, checked for contradictions.
    pub fn options(&self) -> Result<ImportOptions, OptionError> {
        let (map, status) = (self.map.clone(), self.status.clone());
        let read =
            ImportOptions::new(map, status, self.permit_type.clone(), self.date_format.clone(), self.keep_good_rows);
        read.map(|options| options.of_sheet(self.sheet.clone()))
    }
}

pub async fn run(arguments: Arguments, config: Config, database: &Database) -> Result<ExitCode> {
    let options = arguments.options()?;
    let app = App::open(config, database).await?;
    let rules = ImportRules {
        moment: app.moment(None).await?,
        window: app.config.send_window.as_ref(),
        claim_limit: app.config.scan_claim_limit.map_or(0, u64::from),
        catch_up: arguments.catch_up,
        dry_run: arguments.dry_run,
        by: COMMAND,
    };
    let mut meter = Meter::new();
    let report =
        import(&database.direct_url, Input::Path(arguments.file), &options, &rules, |at| meter.show(at)).await?;
    if let Some((path, id)) = arguments.errors.as_deref().zip(report.id) {
        let written = write_rejected(&app, id, path).await;
        written.with_context(|| format!("--errors: {} cannot be written", path.display()))?;
    }
    if arguments.json {
        print_json(&report)?;
    } else {
        say!("{}", report.to_string().trim_end());
    }
    let refused = report.rejected > 0 && !arguments.keep_good_rows;
    let done = report.committed || (report.dry_run && !refused);
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn write_rejected(app: &App<'_>, import: Uuid, path: &Path) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut rows = rejected_rows(app.pool.clone(), import).await?;
    while let Some(piece) = rows.next().await {
        file.write_all(&piece?)?;
    }
    Ok(file.flush()?)
}

/// Tells on standard error how far a long import is, from its third second on.
struct Meter {
    started: Instant,
    next: Duration,
}

impl Meter {
    fn new() -> Self {
        Self { started: Instant::now(), next: Duration::from_secs(2) }
    }

    fn show(&mut self, at: Progress) {
        let elapsed = self.started.elapsed();
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + Duration::from_secs(2);
        let what = match at.phase {
            Phase::Reading => "rows read",
            Phase::Applying => "permits applied",
        };
        eprintln!("{} of {} {what} after {} seconds", at.done, at.total, elapsed.as_secs());
    }
}
