//! What changes of a permit make of its notices, in the transaction of the change.

mod addresses;
mod dates;
mod numbers;
mod renewals;
mod schedules;
mod standing;
