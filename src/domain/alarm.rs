//! Alarms: what the operator must hear of.

use super::words;

/// What Message-IDs of mail to the operator begin with, so that whoever compares a mail server's log with what is recorded
/// of notices knows them apart.
pub const OPERATOR_MAIL: &str = "operator.";

words! {
    /// What is wrong.
    "alarm" AlarmKind {
        /// A scan that was expected did not run.
        MissingRun = "missing_run",
        /// The last scan failed.
        FailedScan = "failed_scan",
        /// The mail server cannot be used, and nothing is tried.
        Transport = "transport",
        /// Mails that failed for good wait for a person.
        DeadLetters = "dead_letters",
        /// Nobody has found out for an hour whether a mail arrived.
        Ambiguous = "ambiguous",
        /// Notices are held until a person releases them.
        Held = "held",
        /// A notice owed by law ended unsent.
        UnsentStatutory = "unsent_statutory",
        /// A mail has been due for too long.
        OldestPending = "oldest_pending",
        /// Replicas run with different settings.
        ReplicasDisagree = "replicas_disagree",
        /// The database is not the one that wrote its memory.
        MemoryWentBack = "memory_went_back",
        /// A mail was accepted after somebody had said that it was not.
        LateResult = "late_result",
        /// A session of the database has kept a transaction open for long.
        DatabaseHeld = "database_held",
        /// Mails were kept as files, or back by the guard of a trial, and could still be sent.
        FilesOnly = "files_only",
    }
}

words! {
    /// What a message about an alarm says.
    "alarm event" AlarmEvent {
        /// It began.
        Raised = "raised",
        /// It is over.
        Cleared = "cleared",
    }
}

words! {
    /// Where a message about an alarm goes.
    "alarm surface" AlarmSurface {
        /// To `ALERT_EMAIL`.
        Email = "email",
        /// To `ALERT_WEBHOOK_URL`.
        Webhook = "webhook",
    }
}

impl AlarmKind {
    /// What it is called, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::MissingRun => "A scan did not run",
            Self::FailedScan => "A scan failed",
            Self::Transport => "The mail server cannot be used",
            Self::DeadLetters => "Mails could not be sent",
            Self::Ambiguous => "Nobody knows whether mails arrived",
            Self::Held => "Notices are held",
            Self::UnsentStatutory => "Notices owed by law ended unsent",
            Self::OldestPending => "Mail waits too long",
            Self::ReplicasDisagree => "Replicas disagree",
            Self::MemoryWentBack => "The database is not the one that was",
            Self::LateResult => "A mail arrived after all",
            Self::DatabaseHeld => "The database is held up",
            Self::FilesOnly => "Mail was not really sent",
        }
    }

    /// What the operator does about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::MissingRun => {
                "Look whether a process with the role scan runs and what its log says; \
                 scan now on the page Scans or with: permit-notifier scan"
            }
            Self::FailedScan => "It is tried again by itself; read its error on the page Scans and mend the cause.",
            Self::Transport => {
                "Mail goes out by itself when the server is back; look at it, and at SMTP_URL: permit-notifier doctor"
            }
            Self::DeadLetters => "Send again or give up, on the page Problems.",
            Self::Ambiguous => "Find out in the mail server's log and say so, on the page Problems.",
            Self::Held => "Release or cancel, on the page Problems.",
            Self::UnsentStatutory => "Tell the holders in another way; the notices are on the page Notices.",
            Self::OldestPending => {
                "Look at the page Today, at the mail server, and whether a process with the role dispatch runs."
            }
            Self::ReplicasDisagree => {
                "Give all replicas the same settings and version; the page Scans shows them side by side."
            }
            Self::MemoryWentBack => {
                "Compare with the mail server's log (permit-notifier audit), then run: permit-notifier resume --reason TEXT"
            }
            Self::LateResult => "The holder may have got two mails; look at the notice and tell whoever asks.",
            Self::DatabaseHeld => "Find whose session it is (pg_stat_activity) and end it: pg_terminate_backend.",
            Self::FilesOnly => {
                "Set SMTP_URL. Then send what still matters from the page of its notice, found on the page Notices: of a mail \
                 that is only a file \"Send one more copy\", of one that a trial kept back \"Send again\". By the API the \
                 first is POST /api/v1/notices/{id}/copies, one by one; the second can be done with many at once: POST \
                 /api/v1/notices/actions with {\"action\": \"retry\", \"filter\": {\"state\": \"failed\"}}."
            }
        }
    }
}
