#include "tool/sample/sample_words.h"

static const struct sample_topic topics[] = {
    {"凝聚态物理",
     SAMPLE_LIST("twisted bilayer graphene", "kagome superconductors",
                 "topological insulator films", "frustrated quantum magnets", "moir{\\'e} excitons",
                 "charge density waves"),
     SAMPLE_LIST("uniaxial strain", "electrostatic gating", "magnetic disorder",
                 "hydrostatic pressure", "spin-orbit coupling", "terahertz driving"),
     SAMPLE_LIST("critical temperature", "anomalous Hall conductivity", "superfluid stiffness",
                 "gap anisotropy", "magnon lifetimes", "optical conductivity")},
    {"量子信息",
     SAMPLE_LIST("superconducting qubits", "trapped-ion processors", "quantum error correction",
                 "neutral-atom arrays", "quantum key distribution", "variational algorithms"),
     SAMPLE_LIST("correlated noise", "dynamical decoupling", "cosmic-ray bursts",
                 "crosstalk mitigation", "mid-circuit measurement", "photon loss"),
     SAMPLE_LIST("gate fidelity", "logical error rates", "coherence times", "secret key rate",
                 "entanglement entropy", "readout contrast")},
    {"天体物理",
     SAMPLE_LIST("exoplanet atmospheres", "fast radio bursts", "binary neutron star mergers",
                 "low-metallicity dwarf galaxies", "supermassive black hole growth",
                 "protoplanetary discs"),
     SAMPLE_LIST("stellar activity", "dust opacity", "gravitational lensing", "tidal interactions",
                 "magnetic braking", "photoevaporation"),
     SAMPLE_LIST("mass-loss rates", "spectral line ratios", "event rates",
                 "star formation efficiency", "spin distributions", "water abundance")},
};

const struct sample_field sample_physics = {
    .tag = "物理学",
    .topics = topics,
    .topic_count = sizeof topics / sizeof *topics,
    .methods = SAMPLE_LIST("angle-resolved photoemission", "quantum {M}onte {C}arlo simulations",
                           "tensor network calculations", "randomised benchmarking",
                           "radio interferometry", "Hamiltonian tomography",
                           "scanning tunnelling microscopy", "a Bayesian retrieval framework"),
    .materials = SAMPLE_LIST(
        "samples grown by molecular beam epitaxy", "devices cooled below twenty millikelvin",
        "archival survey observations", "exfoliated flakes encapsulated in boron nitride",
        "synthetic populations with known parameters", "single crystals of high purity"),
};
