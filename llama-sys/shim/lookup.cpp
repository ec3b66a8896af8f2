// Reads a lookup cache file of the ngram-cache drafter to its end, since llama.cpp aborts on whatever is wrong with it.
//
// Format, in 32-bit integers: four tokens (an n-gram, filled up with -1), the number of followers, then for each a token
// and how often it followed.
#include "drafters.h"

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace {

constexpr int     N_GRAM    = 4;
constexpr int32_t MAX_COUNT = INT32_MAX / 100; // counts are turned into percentages

bool read(std::ifstream & file, int32_t & value) {
    return bool(file.read(reinterpret_cast<char *>(&value), sizeof(value)));
}

} // namespace

lsys_status lsys::check_lookup_file(const char * path, bool must_exist, int32_t n_vocab) {
    const std::filesystem::path where = std::filesystem::u8path(path);
    std::error_code             error;
    if (!std::filesystem::exists(where, error)) {
        const auto folder = where.has_parent_path() ? where.parent_path() : std::filesystem::path(".");
        if (must_exist || !std::filesystem::is_directory(folder, error)) {
            return refuse("the lookup cache %s does not exist", path);
        }
        return LSYS_OK; // it is made when the drafter is freed
    }
    std::ifstream file(where, std::ios::binary);
    if (!std::filesystem::is_regular_file(where, error) || !file) {
        return refuse("the lookup cache %s cannot be read", path);
    }
    int32_t value = 0;
    while (read(file, value)) {
        int32_t n_followers = 0;
        for (int i = 1; i < N_GRAM; ++i) {
            if (!read(file, value)) {
                return refuse("the lookup cache %s ends within an n-gram", path);
            }
        }
        if (!read(file, n_followers) || n_followers <= 0 || n_followers > n_vocab) {
            return refuse("the lookup cache %s has an n-gram with %d followers", path, n_followers);
        }
        for (int32_t i = 0; i < n_followers; ++i) {
            int32_t token = -1, count = 0;
            if (!read(file, token) || !read(file, count)) {
                return refuse("the lookup cache %s ends within an n-gram", path);
            }
            if (token < 0 || token >= n_vocab || count <= 0 || count > MAX_COUNT) {
                return refuse("the lookup cache %s names token %d, %d times, for a vocabulary of %d", path, token, count, n_vocab);
            }
        }
    }
    // Whole integers only: a rest of one to three bytes was read but is not one.
    return file.gcount() == 0 ? LSYS_OK : refuse("the lookup cache %s ends within a number", path);
}
