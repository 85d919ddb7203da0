//! Sessions, plans, the executor and the rendezvous.
