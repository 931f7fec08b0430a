//! `consume --timeout`: the global flag, with a further meaning here when it is given.

use std::time::Duration;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, parser::ValueSource};

const ID: &str = "timeout";

/// How long to wait for the next record; `None`: for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IdleArgs {
    pub(super) timeout: Option<Duration>,
}

impl FromArgMatches for IdleArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        // The default of the global flag is about calls; it does not end a reader that follows.
        let given = matches.value_source(ID) == Some(ValueSource::CommandLine);
        self.timeout = matches.get_one::<Duration>(ID).copied().filter(|_| given);
        Ok(())
    }
}

impl Args for IdleArgs {
    fn augment_args(command: Command) -> Command {
        // The same id as the global flag, so that it replaces it.
        command.arg(
            Arg::new(ID)
                .long("timeout")
                .value_name("DURATION")
                .value_parser(humantime::parse_duration)
                .help("End with exit code 5 when nothing came for so long; also how long a call may take"),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Parser, Subcommand};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[arg(long, global = true, default_value = "30s", value_parser = humantime::parse_duration)]
        timeout: Duration,
        #[command(subcommand)]
        command: Sub,
    }

    #[derive(Subcommand)]
    enum Sub {
        Consume(IdleArgs),
        Other,
    }

    fn parse(words: &[&str]) -> (Duration, Option<Duration>) {
        let line = Line::try_parse_from(["x"].iter().chain(words)).unwrap();
        match line.command {
            Sub::Consume(idle) => (line.timeout, idle.timeout),
            Sub::Other => (line.timeout, None),
        }
    }

    #[test]
    fn only_a_given_timeout_ends_a_reader() {
        let (five, thirty) = (Duration::from_secs(5), Duration::from_secs(30));
        assert_eq!(parse(&["consume"]), (thirty, None));
        assert_eq!(parse(&["consume", "--timeout", "5s"]), (five, Some(five)));
        assert_eq!(parse(&["--timeout", "5s", "consume"]), (five, Some(five)));
        assert_eq!(parse(&["other"]), (thirty, None));
    }
}
