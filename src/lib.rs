//! Permit Notifier tells permit holders, in time and never twice by our own doing, that their permit is
//! about to expire, and can prove it.
//!
//! The map: `domain` decides what is owed and holds no I/O; `store` is the only place that speaks SQL;
//! `scan` finds and claims what is owed, one replica at a time; `dispatch` sends it, on every replica;
//! `watch` looks for what the operator must hear of, and says it; `mail` composes messages and hands them
//! over; `auth` says who may do what; `files` reads what offices hand us; `purge` removes what is
//! old; `web` is HTTP; `app` puts the parts together and `commands` are what a person can run. Leaves that any of
//! them may use: `config` (the environment), `clock` (business time), `shutdown`, `telemetry` (logs and metrics),
//! `outgoing` (what we call by HTTP), and `private_postgres` (the database server of our own).

pub mod app;
pub mod auth;
pub mod clock;
pub mod commands;
pub mod config;
pub mod dispatch;
pub mod domain;
pub mod files;
pub mod mail;
pub mod outgoing;
pub mod private_postgres;
pub mod purge;
pub mod scan;
pub mod shutdown;
pub mod store;
pub mod telemetry;
pub mod watch;
pub mod web;
