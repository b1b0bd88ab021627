#include "balance.hpp"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <utility>

namespace quickmeans {
namespace {

constexpr std::int32_t kFromHub = -1;  // the edge of a path that joins a cluster and T
constexpr std::int64_t kPollEvery = 256;

// What a row adds by moving.
struct Move {
    double cost;
    std::int32_t row;
    bool operator>(const Move& other) const { return cost > other.cost || (cost == other.cost && row > other.row); }
};

// The moves from one cluster to another, the cheapest on top; rows that have left the cluster are still in it.
struct Moves {
    std::int32_t from, to;
    std::vector<Move> heap;

    void push(const Move& move) {
        heap.push_back(move);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
};

class Flow {
  public:
    Flow(const BalanceJob& job, const Poll& poll) : job_(job), poll_(poll), hub_(job.n_centers) {
        const auto K = std::size_t(job.n_centers), nodes = K + 1;
        potential_.assign(nodes, 0);
        flow_.assign(K, 0);
        excess_.assign(nodes, 0);
        out_.resize(K), in_.resize(K), members_.resize(K), listing_.resize(K);
        has_out_.assign(K, 0), has_in_.assign(K, 0);
        distance_.assign(nodes, 0), edge_.assign(nodes, 0), before_.assign(nodes, 0);
        seen_.assign(nodes, 0), settled_.assign(nodes, 0);
        own_.resize(std::size_t(job.n));
        begin();
    }

    Balanced run() {
        for (std::int64_t k = 0; k < job_.n_centers; ++k)
            while (excess_[k] > 0)
                if (!augment<true>(k)) return stuck(Balanced::needs_more_outside);
        for (std::int64_t k = 0; k < job_.n_centers; ++k)
            while (excess_[k] < 0)
                if (!augment<false>(k)) return stuck(Balanced::needs_more_inside);
        keep_prices();
        return Balanced::all;
    }

  private:
    // Rows go to their nearest candidates; clusters pass on as many as they may.
    void begin() {
        std::vector<std::int64_t> sizes(std::size_t(job_.n_centers), 0);
        for (std::int64_t i = 0; i < job_.n; ++i) {
            std::int32_t label = -1;
            for (std::int64_t j = i * job_.m; j < (i + 1) * job_.m; ++j) {
                const std::int32_t c = job_.candidates[j];
                if (c < 0) continue;
                if (c >= job_.n_centers) throw std::invalid_argument("a candidate is no center");
                if (label < 0 || double(job_.squares[j]) < own_[i]) label = c, own_[i] = job_.squares[j];
            }
            if (label < 0) throw std::invalid_argument("a row has no candidates");
            job_.labels[i] = label;
            members_[label].push_back(std::int32_t(i));
            ++sizes[label];
        }
        excess_[hub_] = -job_.n;
        for (std::int64_t k = 0; k < job_.n_centers; ++k) {
            flow_[k] = std::clamp(sizes[k], job_.least, job_.most);
            excess_[k] = sizes[k] - flow_[k];
            excess_[hub_] += flow_[k];
        }
    }

    std::int32_t moves_between(std::int32_t from, std::int32_t to) {
        auto& edges = out_[from];
        const auto at = std::lower_bound(edges.begin(), edges.end(), std::pair{to, std::int32_t(0)});
        if (at != edges.end() && at->first == to) return at->second;
        const auto number = std::int32_t(moves_.size());
        edges.insert(at, {to, number});
        in_[to].emplace_back(from, number);
        moves_.push_back({from, to, {}});
        return number;
    }

    void push(std::int64_t row, std::int64_t j, std::int32_t from) {
        const double cost = double(job_.squares[j]) - own_[row];
        moves_[moves_between(from, job_.candidates[j])].push({cost, std::int32_t(row)});
    }

    void make_out(std::int64_t k) {
        if (has_out_[k]) return;
        has_out_[k] = 1;
        const std::vector<std::int32_t> members = std::move(members_[k]);
        for (const std::int32_t row : members) {
            if (job_.labels[row] != k) continue;
            for (std::int64_t j = row * job_.m; j < (row + 1) * job_.m; ++j) {
                const std::int32_t c = job_.candidates[j];
                if (c < 0 || c == k) continue;
                moves_[moves_between(std::int32_t(k), c)].heap.push_back({double(job_.squares[j]) - own_[row], row});
            }
        }
        for (const auto& edge : out_[k]) {
            auto& heap = moves_[edge.second].heap;
            std::make_heap(heap.begin(), heap.end(), std::greater<>());
        }
    }

    // The places in the lists where each center is a candidate.
    void list_rows() {
        if (is_listed_) return;
        is_listed_ = true;
        for (std::int64_t j = 0; j < job_.n * job_.m; ++j)
            if (job_.candidates[j] >= 0) listing_[job_.candidates[j]].push_back(j);
    }

    void make_in(std::int64_t k) {
        if (has_in_[k]) return;
        has_in_[k] = 1;
        list_rows();
        for (const std::int64_t j : listing_[k]) {
            const std::int64_t row = j / job_.m;
            if (job_.labels[row] != k) push(row, j, job_.labels[row]);
        }
    }

    // The cheapest move, or null.
    const Move* cheapest(std::int32_t number) {
        Moves& moves = moves_[number];
        auto& heap = moves.heap;
        while (!heap.empty() && job_.labels[heap.front().row] != moves.from) {
            std::pop_heap(heap.begin(), heap.end(), std::greater<>());
            heap.pop_back();
        }
        return heap.empty() ? nullptr : &heap.front();
    }

    void arrive(std::int32_t row, std::int32_t to) {
        job_.labels[row] = to;
        for (std::int64_t j = row * job_.m; j < (row + 1) * job_.m; ++j)
            if (job_.candidates[j] == to) own_[row] = job_.squares[j];
        if (!has_out_[to]) members_[to].push_back(row);
        for (std::int64_t j = row * job_.m; j < (row + 1) * job_.m; ++j) {
            const std::int32_t c = job_.candidates[j];
            if (c >= 0 && c != to && (has_out_[to] || has_in_[c])) push(row, j, to);
        }
    }

    void reach(std::int64_t node, double distance, std::int64_t from, std::int32_t edge) {
        if (settled_[node] == round_ || (seen_[node] == round_ && distance_[node] <= distance)) return;
        seen_[node] = round_;
        distance_[node] = distance;
        before_[node] = from;
        edge_[node] = edge;
        queue_.emplace(distance, node);
    }

    // Reach what a settled node has edges to, or from.
    template <bool Forward>
    void expand(std::int64_t node) {
        const double here = distance_[node];
        const auto length = [&](double cost, std::int64_t tail, std::int64_t head) {
            return here + std::max(cost + potential_[tail] - potential_[head], 0.0);  // less than zero by rounding only
        };
        if (node == hub_) {
            for (std::int64_t k = 0; k < job_.n_centers; ++k)
                if (Forward ? flow_[k] > job_.least : flow_[k] < job_.most)
                    reach(k, Forward ? length(0, hub_, k) : length(0, k, hub_), hub_, kFromHub);
            return;
        }
        if (Forward ? flow_[node] < job_.most : flow_[node] > job_.least)
            reach(hub_, Forward ? length(0, node, hub_) : length(0, hub_, node), node, kFromHub);
        if constexpr (Forward)
            make_out(node);
        else
            make_in(node);
        for (const auto& [other, number] : Forward ? out_[node] : in_[node]) {
            const Move* const move = cheapest(number);
            if (move)
                reach(other, Forward ? length(move->cost, node, other) : length(move->cost, other, node), node, number);
        }
    }

    // Move one row too many away from a cluster, or one too few to it, along the shortest path; false: there is none.
    template <bool Forward>
    bool augment(std::int64_t start) {
        if (++round_ % kPollEvery == 0) poll_.call(poll_.context);
        queue_ = {};
        path_.clear();
        reach(start, 0, start, kFromHub);
        while (!queue_.empty()) {
            const auto [distance, node] = queue_.top();
            queue_.pop();
            if (settled_[node] == round_) continue;
            settled_[node] = round_;
            path_.push_back(node);
            if (Forward ? excess_[node] < 0 : excess_[node] > 0) {
                for (const std::int64_t v : path_)
                    potential_[v] += Forward ? distance_[v] - distance : distance - distance_[v];
                follow<Forward>(start, node);
                return true;
            }
            expand<Forward>(node);
        }
        return false;
    }

    template <bool Forward>
    void follow(std::int64_t start, std::int64_t end) {
        std::vector<std::pair<std::int32_t, std::int32_t>> arrivals;
        for (std::int64_t node = end; node != start; node = before_[node]) {
            const std::int64_t tail = Forward ? before_[node] : node, head = Forward ? node : before_[node];
            if (edge_[node] != kFromHub)
                arrivals.emplace_back(cheapest(edge_[node])->row, std::int32_t(head));
            else if (head == hub_)
                ++flow_[tail];
            else
                --flow_[head];
        }
        for (const auto& [row, to] : arrivals) arrive(row, to);
        excess_[start] += Forward ? -1 : 1;
        excess_[end] += Forward ? 1 : -1;
    }

    Balanced stuck(Balanced how) {
        for (std::int64_t k = 0; k < job_.n_centers; ++k) job_.reached[k] = settled_[k] == round_;
        keep_prices();
        return how;
    }

    void keep_prices() {
        for (std::int64_t k = 0; k < job_.n_centers; ++k) job_.prices[k] = potential_[hub_] - potential_[k];
    }

    const BalanceJob& job_;
    const Poll& poll_;
    const std::int64_t hub_;                                         // T
    std::vector<double> potential_;                                  // of every node
    std::vector<std::int64_t> flow_;                                 // from every cluster to T
    std::vector<std::int64_t> excess_;                               // rows that came to a node and have not gone on
    std::vector<double> own_;                                        // the square of every row
    std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>>  // (other cluster, number of the moves)
        out_, in_;
    std::vector<std::vector<std::int32_t>> members_;  // rows of every cluster, until its moves are made
    std::vector<std::vector<std::int64_t>> listing_;
    bool is_listed_ = false;
    std::vector<char> has_out_, has_in_;  // whether all moves from, or to, the cluster are there
    std::vector<Moves> moves_;
    std::vector<double> distance_;
    std::vector<std::int64_t> before_, seen_, settled_, path_;
    std::vector<std::int32_t> edge_;
    std::int64_t round_ = 0;
    std::priority_queue<std::pair<double, std::int64_t>, std::vector<std::pair<double, std::int64_t>>, std::greater<>>
        queue_;
};

}  // namespace

Balanced balance(const BalanceJob& job, const Poll& poll) { return Flow(job, poll).run(); }

}  // namespace quickmeans
